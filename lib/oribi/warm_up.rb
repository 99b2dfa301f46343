# frozen_string_literal: true

require "oribi/errors"
require "oribi/stream"
require "oribi/version"

module Oribi
  # The request that a new worker puts to its app before it takes any from clients: what an app does
  # when it is first asked is then done, and an app that cannot answer is never asked by a client.
  module WarmUp
    # As a front on this machine would have filled it in.
    ENVIRONMENT = { "HTTP_HOST" => "localhost", "SERVER_NAME" => "localhost",
                    "SERVER_PORT" => "80", "REMOTE_ADDR" => "127.0.0.1", "REMOTE_PORT" => "0",
                    "HTTP_USER_AGENT" => "oribi/#{VERSION} warm_up",
                    "HTTP_ACCEPT" => "*/*" }.freeze

    # Where a body that calls writes to.
    module Nobody
      module_function

      def write(_part) = true

      def finish = nil
    end

    private_constant :ENVIRONMENT, :Nobody

    module_function

    # Asks for `path`; raises Unfit when the answer is neither 2xx nor 3xx. `template` is what the
    # env of every request of the worker starts as.
    def check(app, template, path)
      what = "warm_up: GET #{path}"
      status = ask(app, env(template, path))
    rescue Exception => error # rubocop:disable Lint/RescueException
      Report.write(error)
      raise Unfit, "#{what} raised #{Report.line(error)}"
    else
      raise Unfit, "#{what} answered #{status}" unless (200..399).cover?(status)
    end

    def env(template, target)
      target = "/#{target}" unless target.start_with?("/")
      path, query = target.split("?", 2)
      own = ENVIRONMENT.merge("PATH_INFO" => path, "QUERY_STRING" => query.to_s,
                              "REQUEST_URI" => target)
      own.transform_values!(&:b)
      # There is no connection to hand over.
      own["rack.hijack?"] = false
      own["rack.response_finished"] = []
      own["rack.after_reply"] = []
      own["oribi.queue_time"] = 0.0
      template.merge(own)
    end

    # The answer's status, after all of it has been read.
    def ask(app, env)
      status, headers, body = app.call(env)
      begin
        if body.respond_to?(:each)
          body.each {}
        else
          body.call(Stream.new(Nobody, env["rack.input"]))
        end
      ensure
        body.close if body.respond_to?(:close)
      end
      env["rack.response_finished"].reverse_each { |one| one.call(env, status, headers, nil) }
      env["rack.after_reply"].each(&:call)
      Integer(status)
    end
  end
end
