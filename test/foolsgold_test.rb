# frozen_string_literal: true

require "helper_examples"

# examples/foolsgold: one rackup file at two levels of isolation, in two engines.
class FoolsgoldTest < Helper::ExampleCase
  program "foolsgold"

  FRESH = %w[/fools-gold/shared-nothing /fools-gold/cruby/shared-nothing].freeze
  KEPT = %w[/fools-gold/prefork /fools-gold/cruby/prefork].freeze
  ENGINES = { "mruby" => [FRESH[0], KEPT[0]], "ruby" => [FRESH[1], KEPT[1]] }.freeze
  UUID = /\A\h{8}-\h{4}-4\h{3}-[89ab]\h{3}-\h{12}\z/

  def test_all_four_answer_and_count_together
    before = fields(KEPT[0])["total_requests"].to_i
    rounds = 5.times.flat_map { (FRESH + KEPT).map { |path| [path, fields(path)] } }
    assert_equal((before + 1..before + 20).to_a, rounds.map { |_, its| its["total_requests"].to_i })
    ids = rounds.map { |_, its| its["trace_id"] }
    assert_equal ids, ids.grep(UUID).uniq
    ENGINES.each do |engine, paths|
      found = rounds.select { |path,| paths.include?(path) }
      assert(found.all? { |_, its| its["engine"].start_with?("#{engine} ") }, found.to_s)
    end
  end

  def test_the_counter_is_exact_under_load
    before = fields(FRESH[0])["total_requests"].to_i
    threads = (FRESH + KEPT).map { |path| Thread.new { Array.new(50) { fields(path) } } }
    seen = threads.flat_map(&:value).map { |its| its["total_requests"].to_i }
    assert_equal before + 201, fields(FRESH[0])["total_requests"].to_i
    assert_operator seen.max, :<=, before + 200
  end

  def test_shared_nothing_shares_nothing
    FRESH.each do |path|
      Array.new(20) { fields(path) }.each do |its|
        assert_equal [its["trace_id"], "1"], its.values_at("interpreter", "served"), path
      end
    end
  end

  def test_an_interpreter_is_kept_for_exactly_150_requests
    KEPT.each do |path|
      lives = Hash.new { |all, id| all[id] = [] }
      # Whichever had begun before this test ends within as many as one may serve, of each.
      700.times do
        its = fields(path)
        lives[its["interpreter"]] << its["served"].to_i
      end
      whole = lives.values.select { |served| served.first == 1 && served.size > 1 }
      ended = whole.select { |served| served.last == 150 }
      refute_empty ended, path
      ended.each { |served| assert_equal (1..150).to_a, served, path }
      assert_operator lives.values.map(&:max).max, :<=, 150, path
      assert_operator lives.size, :>, 2, path
    end
  end

  def test_assets_are_in_the_binary
    page = ask("/fools-gold/")
    assert_equal "200", page.code
    assert_equal page.body, ask("/fools-gold/index.html").body
    page.body.scan(/(?:href|src)="([^"]+)"/).flatten.uniq.each do |link|
      assert_equal "200", ask(link).code, link
    end
    assert_equal "image/svg+xml", ask("/fools-gold/pyrite.svg")["content-type"]
    assert_equal "text/css; charset=utf-8", ask("/fools-gold/style.css")["content-type"]
    assert_equal "404", ask("/fools-gold/elsewhere").code
  end
end
