# frozen_string_literal: true

module Oribi
  # What the interpreter's heap still has room for, in requests of the size that they have lately
  # had. Ruby collects when no slot of the size that is wanted is free, or when so many bytes were
  # allocated beside the heap; both can be read beforehand. docs/gc.md has what was measured.
  class Heap
    # What one request after another needs is remembered as the most of them, less one part in so
    # many with each: one large page among a hundred is provided for.
    FORGET = 64
    # Room for so many requests is made when a collection has left less than LOW, but not more
    # often than every PAUSE requests, nor more than MOST bytes at once.
    GROWN = 10
    LOW = 4
    PAUSE = 20
    MOST = 64 * 1024 * 1024
    # Slots that nobody counts on: threads and the collection itself take some.
    RESERVE = 500
    # One part in so many of what is free is no reason to look.
    LITTLE = 32
    # What a slot size hardly wants is no reason to collect.
    FEW = 64

    def initialize
      @sizes = slot_sizes
      @needed = @sizes.map { 0 }
      @needed_bytes = 0
      @since_grown = PAUSE
      @names_majors = names_majors?
      @majors_held = hold_majors
      remember
    end

    # Takes in what was used since the last call, to be called after each request. False if that was
    # too little to look at more closely: most of what a small request would pay for it is saved.
    def learn
      total = GC.stat(:total_allocated_objects)
      bytes = GC.stat(:malloc_increase_bytes)
      return false if total - @total < @little && bytes - @bytes < @little_bytes

      @since_grown += 1
      before = @seen
      refresh
      @needed.each_index do |size|
        @needed[size] = most(@needed[size], @seen[size].allocated - before[size].allocated)
      end
      learn_bytes(bytes)
      true
    end

    # How many requests like the largest of late fit in before Ruby collects by itself; 0 as well
    # where it would, but may not, and where it goes on with a collection that it has begun.
    def room
      marking? || (@majors_held && major_wanted?) ? 0 : [slot_room, byte_room].min
    end

    # False while a collection would give back less than half of what the last one has: where the
    # largest request is larger than the heap, collecting after each of the small ones is in vain.
    # Where Ruby had to collect meanwhile, it is not known what there is.
    def worthwhile?
      return true if @surprised || (@majors_held && major_wanted?)

      limit = GC.stat(:malloc_increase_bytes_limit)
      2 * @bytes > limit || @seen.each_with_index.any? { |now, i| 2 * now.free < @freed[i] }
    end

    # Bytes that were allocated since the last collection, about.
    def uncollected
      GC.stat(:malloc_increase_bytes) + @sizes.each_index.sum do |size|
        @sizes[size] * [@freed[size] - @seen[size].free + grown(size), 0].max
      end
    end

    # Collects so that there is room again: the young objects alone if that is enough.
    def collect
      # Ruby makes it a full one by itself where it has noted that it wants one.
      GC.start(full_mark: false)
      refresh
      if major_wanted? && (@names_majors || slot_room < LOW)
        GC.start
        refresh
      end
      grow if slot_room < LOW && @since_grown >= PAUSE
      # This code needs slots too, and may have been the one to begin a full collection.
      GC.start(full_mark: false) if marking?
      remember
    end

    private

    def learn_bytes(bytes)
      # A collection meanwhile has begun it anew.
      if @count == GC.count
        @needed_bytes = most(@needed_bytes, bytes - @bytes)
      else
        @surprised = true
        @count = GC.count
      end
      @bytes = bytes
    end

    # One size of slots: objects ever allocated, slots free, slots there are.
    Slots = Struct.new(:allocated, :free, :all)

    # The sizes of slots there are; nil where Ruby does not tell them apart or has but one.
    def slot_sizes
      return [40] unless GC.respond_to?(:stat_heap) && GC.stat_heap(0).key?(:total_freed_objects)

      @by_size = {}
      GC.stat_heap(nil, @by_size).values.map { |heap| heap[:slot_size] }
    end

    def slots
      unless @by_size
        return [Slots.new(GC.stat(:total_allocated_objects), GC.stat(:heap_free_slots),
                          GC.stat(:heap_available_slots))]
      end

      GC.stat_heap(nil, @by_size).values.map do |heap|
        allocated, all = heap.values_at(:total_allocated_objects, :heap_eden_slots)
        Slots.new(allocated, all - (allocated - heap[:total_freed_objects]), all)
      end
    end

    def refresh
      @seen = slots
      @total = GC.stat(:total_allocated_objects)
      free = @seen.each_with_index.filter_map { |now, i| now.free if @needed[i] >= FEW }.min
      @little = (free || @seen.first.free) / LITTLE
    end

    # What a collection has left is what the next requests are counted from.
    def remember
      refresh
      @freed = @seen.map(&:free)
      @present = @seen.map(&:all)
      @bytes = GC.stat(:malloc_increase_bytes)
      @little_bytes = GC.stat(:malloc_increase_bytes_limit) / LITTLE
      @count = GC.count
      @surprised = false
    end

    # Slots that the heap has grown by since.
    def grown(size) = @seen[size].all - @present[size]

    def most(known, now) = now > known ? now : known - (known / FORGET)

    def slot_room
      @seen.each_with_index.map do |slots, size|
        needed = @needed[size]
        needed < FEW ? Float::INFINITY : (slots.free - RESERVE).fdiv(needed)
      end.min
    end

    def byte_room
      return Float::INFINITY unless @needed_bytes.positive?

      (GC.stat(:malloc_increase_bytes_limit) - @bytes).fdiv(@needed_bytes)
    end

    def marking? = GC.latest_gc_info(:state) == :marking

    # Whether Ruby would make its next collection a full one. Until 3.3 it does not say so, but the
    # reasons can be read: too few slots would be free, or too many objects are old.
    def major_wanted?
      return !GC.latest_gc_info(:need_major_by).nil? if @names_majors

      now = GC.stat
      per_page = now[:heap_available_slots] / now[:heap_eden_pages]
      slots = now[:heap_available_slots] + (now[:heap_allocatable_pages] * per_page)
      now[:heap_marked_slots] > 0.8 * slots || now[:old_objects] > now[:old_objects_limit] ||
        now[:oldmalloc_increase_bytes] > now[:oldmalloc_increase_bytes_limit]
    end

    def names_majors?
      GC.latest_gc_info(:need_major_by)
      true
    rescue ArgumentError
      false
    end

    # From Ruby 3.4 on a full collection can be kept out of the requests altogether.
    def hold_majors
      return false unless GC.respond_to?(:config) && GC.config.key?(:rgengc_allow_full_mark)

      GC.config(rgengc_allow_full_mark: false)
      true
    end

    # Makes the heap larger, as a request would that finds no slot: Ruby itself lets it grow only
    # when most of it is in use. The slots are free after the collection that follows.
    def grow
      @since_grown = 0
      disabled = GC.disable
      @sizes.each_with_index { |bytes, size| fill(bytes, missing(size)) }
    ensure
      GC.enable unless disabled
      GC.start(full_mark: false)
    end

    def missing(size)
      return 0 if @needed[size] < FEW

      (GROWN * @needed[size]).clamp(0, MOST / @sizes[size]) - @seen[size].free
    end

    # So many objects in slots of so many bytes, for nothing.
    def fill(bytes, count)
      return unless count.positive?

      # A String of this length lies in its slot with its bytes.
      length = bytes - 40
      length.zero? ? Array.new(count) { Object.new } : Array.new(count) { "x" * length }
    end
  end
end
