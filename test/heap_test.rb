# frozen_string_literal: true

require "helper"
require "oribi/heap"
require "open3"

# What the collector's forecast is made of, in a process of its own for each test: what is measured
# is that process.
class HeapTest < Minitest::Test
  # The last line that the code prints in a Ruby of its own.
  def ask(code, stub = "")
    code = "require 'oribi/heap'\n#{stub}\nheap = Oribi::Heap.new\n#{code}"
    output, status = Open3.capture2e(RbConfig.ruby, "-I#{Helper::LIB}", "-e", code)
    assert status.success?, output
    output.lines.last.chomp
  end

  OBJECTS = "Array.new(20_000) { |nr| [nr] }; heap.learn"

  def test_there_is_room_after_a_collection_for_what_requests_need
    room = ask("5.times { #{OBJECTS} }; heap.collect; p heap.room")
    assert_operator Float(room), :>, 2
  end

  def test_nothing_is_left_when_a_request_has_used_it_up
    room = ask("5.times { #{OBJECTS} }; heap.collect; GC.disable
                kept = Array.new(GC.stat(:heap_free_slots) + 1000) { [] }
                heap.learn; p heap.room")
    assert_operator Float(room), :<, 1
  end

  def test_little_is_not_looked_at
    assert_equal "[false, true]",
                 ask("heap.collect; heap.learn; a = heap.learn; #{OBJECTS.sub('heap', 'b = heap')}
                      p [a, b]")
  end

  def test_the_heap_does_not_grow_for_small_requests
    grown = ask("heap.collect; before = GC.stat(:heap_available_slots)
                 100.times { Array.new(100) { [] }; heap.learn; heap.collect }
                 p GC.stat(:heap_available_slots) <= before * 1.2")
    assert_equal "true", grown
  end

  def test_a_collector_that_the_app_has_switched_off_stays_off
    assert_equal "true", ask("GC.disable; 5.times { #{OBJECTS} }; heap.collect; p GC.disable")
  end

  # What Ruby 3.4 has, where this one has not.
  STUB = <<~'RUBY'
    CALLS = []
    WANTED = []
    GC.define_singleton_method(:config) do |**set|
      CALLS << set unless set.empty?
      { rgengc_allow_full_mark: true }
    end
    GC.singleton_class.prepend(Module.new do
      def latest_gc_info(key = nil) = key == :need_major_by ? WANTED.first : super

      def start(**how)
        CALLS << how
        super
      end
    end)
  RUBY

  def test_full_collections_are_kept_out_of_requests_where_ruby_can
    assert_equal "[{:rgengc_allow_full_mark=>false}, {:full_mark=>false}]",
                 ask("heap.collect; p CALLS", STUB).gsub(/(\w+): /, ':\1=>')
  end

  def test_a_full_collection_that_is_wanted_is_made_out_of_band
    assert_equal "[true, 0, [{:full_mark=>false}, {}]]",
                 ask("CALLS.clear; WANTED << :oldgen; heap.learn
                      wanted = [heap.worthwhile?, heap.room]
                      heap.collect; p [*wanted, CALLS]", STUB)
                   .gsub(/(\w+): /, ':\1=>')
  end
end
