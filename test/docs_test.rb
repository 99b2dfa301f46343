# frozen_string_literal: true

require "helper"
require "oribi/rhebok"
require "json"
require "open3"
require "shellwords"

# Pages that say what the program says.
class DocsTest < Minitest::Test
  ROOT = Helper::ROOT

  def page(name) = File.read(File.join(ROOT, "docs", name))

  def test_the_tables_of_options_are_the_programs
    out, status = Open3.capture2e(RbConfig.ruby, File.join(ROOT, "tools/options-doc"), "--check")
    assert status.success?, out
  end

  def test_a_stale_table_is_noticed
    Dir.mktmpdir do |directory|
      FileUtils.cp_r([File.join(ROOT, "tools"), File.join(ROOT, "docs")], directory)
      FileUtils.ln_s(Helper::LIB, File.join(directory, "lib"))
      stale = File.join(directory, "docs/configuration.md")
      File.write(stale, File.read(stale).sub("| `workers` |", "| `laborers` |"))
      tool = File.join(directory, "tools/options-doc")
      binary = { "ORIBI_BINARY" => Oribi::Binary.path }
      out, status = Open3.capture2e(binary, RbConfig.ruby, tool, "--check")
      assert_equal ["docs/configuration.md is stale: make docs-options\n", 1],
                   [out, status.exitstatus]
    end
  end

  def test_every_hook_is_described
    described = page("configuration.md").scan(/^\| `(\w+)` \| (?:mold|worker)/).flatten
    assert_equal Oribi::Config::HOOKS.sort, described.sort
  end

  # Mounts as the server understands a file or a line of the page: name => setting => values.
  def mounts(directory, *words)
    out, err, status = Open3.capture3(Oribi::Binary.environment, Oribi::Binary.path, "config",
                                      "--json", *words, chdir: directory)
    assert status.success?, err
    of_mounts = JSON.parse(out).select { |row| row["mount"] }.group_by { |row| row["mount"] }
    of_mounts.transform_values { |rows| rows.to_h { |row| row.values_at("name", "values") } }
  end

  def test_the_examples_of_mounts_are_understood_and_agree
    section = page("configuration.md")[/^## Mounts$.*?(?=^## )/m]
    examples = section.scan(/^```(\w*)\n(.*?)^```/m)
    ruby, toml, line = examples.map(&:last)
    assert_equal ["ruby", "toml", ""], examples.map(&:first)
    Dir.mktmpdir do |directory|
      { "oribi.rb" => ruby, "oribi.toml" => toml }.each do |name, text|
        File.write(File.join(directory, name), text)
      end
      of_ruby = mounts(directory, "-C", "oribi.rb")
      assert_equal %w[/ shop api old], of_ruby.keys
      assert_equal of_ruby, mounts(directory, "-C", "oribi.toml")
      hooks = Oribi::Config.hooks(File.join(directory, "oribi.rb"), "shop")
      assert_equal %i[before_fork after_fork], hooks.keys
      found = mounts(directory, *Shellwords.split(line).drop(1))
      assert_equal %w[shop api.example /], found.keys
    end
  end

  # What stands first in the middle column of a table is an option or a hook of ours.
  def test_migration_leads_to_names_that_exist
    known = Oribi::Options.table.map { |option| option["name"] } + Oribi::Config::HOOKS +
            %w[oribi stop restart rollback scale]
    named = page("migration.md").scan(/^\| .*? \| (.*) \| [^|]*\|$/).flatten
                                .flat_map { |cell| cell.scan(/`([a-z_]+)[ `]/) }.flatten
    assert_operator named.size, :>, 40
    assert_empty named.uniq - known
    Oribi::Rhebok::OPTIONS.each_key { |name| assert_includes page("migration.md"), "`#{name}`" }
  end
end
