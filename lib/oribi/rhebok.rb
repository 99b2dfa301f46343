# frozen_string_literal: true

require "oribi/handler"

module Oribi
  # `rackup -s Rhebok`: Rhebok's names and defaults, served by Oribi. Its names work with `-s Oribi`
  # too, where our own defaults hold.
  class Rhebok < Handler
    # Rhebok's options: what each is here, and its default. Where there is none, ours holds.
    OPTIONS = {
      "Host" => ["host", "0.0.0.0"],
      "Port" => %w[port 9292],
      "Path" => ["path", nil],
      "BackLog" => ["backlog", Socket::SOMAXCONN.to_s],
      "ReusePort" => %w[reuse_port false],
      "MaxWorkers" => %w[workers 5],
      "MaxRequestPerChild" => %w[max_requests 1000],
      "MinRequestPerChild" => ["min_requests", nil],
      "Timeout" => %w[timeout 300],
      "OobGC" => %w[oob_gc false],
      "MaxGCPerRequest" => %w[max_gc_per_request 5],
      "MinGCPerRequest" => ["min_gc_per_request", nil],
      "ChunkedTransfer" => %w[chunked_transfer false],
      "SpawnInterval" => ["spawn_interval", nil],
      "ErrRespawnInterval" => %w[err_respawn_interval 1],
      "ConfigFile" => ["config", nil]
    }.freeze

    # What Rhebok does without being asked.
    ALWAYS = { "socket_mode" => "0777", "defer_accept" => "true" }.freeze

    class << self
      # For `rackup -h`.
      def valid_options
        docs = Options.table.to_h { |option| [option["name"], option] }
        OPTIONS.to_h do |name, (ours, default)|
          option = docs.fetch(ours)
          doc = name == "ConfigFile" ? "Ruby file whose settings win over these" : option["doc"]
          ["#{name}=#{option['metavar']}", "#{doc}#{" [default: #{default}]" if default}"]
        end
      end

      # Rhebok's defaults by our names.
      def defaults
        OPTIONS.values.to_h.compact.merge(ALWAYS)
      end
    end

    private

    def announce
      super
      puts "loading from config_file:#{@words.config}" if @words.config
      $stdout.flush
    end

    def about = super.merge("handler" => "Rhebok", "defaults" => self.class.defaults)
  end
end
