# frozen_string_literal: true

require "logger"
require "securerandom"
require "rails"
require "action_controller/railtie"
require "action_view/railtie"
require "action_cable/engine"

# A notice board: who has been here, what was brought along, what is said.
module Board
  # The application. Rails 6.1 or newer, without a database.
  class Application < Rails::Application
    config.root = File.expand_path("..", __dir__)
    config.load_defaults Rails::VERSION::STRING.to_f
    config.eager_load = Rails.env.production?
    config.consider_all_requests_local = !Rails.env.production?
    # Whoever keeps sessions over a restart names a key of his own.
    config.secret_key_base = ENV.fetch("SECRET_KEY_BASE") { SecureRandom.hex(64) }
    config.session_store :cookie_store, key: "_board"
    # Pages, and the WebSocket below, for this machine alone.
    config.hosts = ["localhost", "127.0.0.1", "[::1]", "test"]
    config.action_cable.allowed_request_origins = [%r{\Ahttp://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?\z}]
    config.action_cable.mount_path = "/cable"
    # The id that Oribi's access log has too, if there is one.
    config.log_tags = [:request_id]
    config.logger = ActiveSupport::TaggedLogging.new(Logger.new($stdout))
  end
end
