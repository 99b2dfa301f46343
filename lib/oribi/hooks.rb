# frozen_string_literal: true

require "oribi/errors"

module Oribi
  # What the app wants to be called at moments in the life of molds and workers.
  #
  # - `before_fork`: in the mold, before each fork. Gets the `Worker` to be, which has no pid yet.
  #   If it raises, this fork does not happen, and is tried again later.
  # - `after_fork`: in a new worker, before it takes anything. Gets the `Worker`. If it raises, the
  #   worker ends, and another one is tried later.
  # - `after_mold_fork`: in the mold once it has the app, before its first fork. If it raises, the
  #   generation has not booted.
  # - `on_boot`: in the mold once its generation serves.
  # - `before_worker_exit`: in a worker that leaves, after its last reply, before what `at_exit` has
  #   registered. Gets the `Worker`.
  # - `after_request_complete`: in a worker, when a reply has gone out, before it takes the next
  #   request. Gets the request's env and the `Worker`.
  # - `on_request_timeout`: in a worker, in a thread of its own, when a request has run for
  #   `request_timeout_soft`. Gets the request's env and the thread that runs it.
  #
  # What the last four raise is logged.
  class Hooks
    NAMES = %w[before_fork after_fork after_mold_fork on_boot before_worker_exit
               after_request_complete on_request_timeout].freeze

    # More arguments than any hook is given.
    MANY = 9
    private_constant :MANY

    # What hooks are told about a worker.
    Worker = Struct.new(:nr, :generation, :pid)

    # From Hashes of names to a callable or several. The same moment in several of them: one after
    # the other.
    def initialize(*sources)
      @callables = NAMES.to_h { |name| [name, sources.flat_map { |source| of(source, name) }] }
      unknown = sources.flat_map(&:keys).map(&:to_s) - NAMES
      raise Error, "no hook #{unknown.first}: there are #{NAMES.join(', ')}" if unknown.any?
    end

    def any?(name) = !@callables.fetch(name).empty?

    # Calls the hooks of this moment in order, each with as many of the arguments as it takes. What
    # one raises is given to the block, if there is one, and the next is called.
    def run(name, *arguments)
      @callables.fetch(name).each do |callable|
        callable.call(*arguments.take(most(callable)))
      rescue Exception => error # rubocop:disable Lint/RescueException
        raise unless block_given?

        yield error
      end
    end

    private

    def of(source, name)
      found = source.filter_map { |key, callables| callables if key.to_s == name }
      found.flatten.compact.each do |callable|
        next if callable.respond_to?(:call)

        raise Error, "#{name} is #{callable.inspect}, which does not call"
      end
    end

    # How many arguments a callable takes at most.
    def most(callable)
      callable = callable.method(:call) unless callable.respond_to?(:parameters)
      kinds = callable.parameters.map(&:first)
      kinds.include?(:rest) ? MANY : kinds.count { |kind| %i[req opt].include?(kind) }
    end
  end
end
