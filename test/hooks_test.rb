# frozen_string_literal: true

require "helper"
require "oribi/hooks"

# The class by itself: order, arguments, what is refused.
class HooksByThemselvesTest < Minitest::Test
  def test_several_sources_one_after_the_other
    said = []
    hooks = Oribi::Hooks.new({ before_fork: -> { said << 1 } },
                             { "before_fork" => [proc { said << 2 }, proc { said << 3 }] }, {})
    assert hooks.any?("before_fork")
    refute hooks.any?("after_fork")
    hooks.run("before_fork", :unwanted)
    hooks.run("after_fork")
    assert_equal [1, 2, 3], said
  end

  def test_each_gets_as_many_arguments_as_it_takes
    said = []
    callables = [-> { said << [] }, ->(one) { said << [one] }, ->(*all) { said << all },
                 proc { |one, two| said << [one, two] }, ->(one, two = 0) { said << [one, two] },
                 Class.new { define_method(:call) { |one| said << [one] } }.new,
                 said.method(:push)]
    Oribi::Hooks.new("after_request_complete" => callables).run("after_request_complete", 1, 2)
    assert_equal [[], [1], [1, 2], [1, 2], [1, 2], [1], 1, 2], said
  end

  def test_what_one_raises_goes_to_the_caller_or_to_the_block
    said = []
    hooks = Oribi::Hooks.new("on_boot" => [-> { raise "no" }, -> { said << "next" }])
    assert_equal "no", assert_raises(RuntimeError) { hooks.run("on_boot") }.message
    assert_empty said
    hooks.run("on_boot") { |error| said << error.message }
    assert_equal %w[no next], said
  end

  def test_what_is_no_hook_is_refused
    error = assert_raises(Oribi::Error) { Oribi::Hooks.new({ "after_forking" => [] }) }
    assert_match(/no hook after_forking: there are before_fork, /, error.message)
    error = assert_raises(Oribi::Error) { Oribi::Hooks.new({ "after_fork" => ["me"] }) }
    assert_equal 'after_fork is "me", which does not call', error.message
    refute Oribi::Hooks.new({ "after_fork" => nil }).any?("after_fork")
  end
end
