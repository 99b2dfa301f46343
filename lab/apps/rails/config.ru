# frozen_string_literal: true

# A Rails application as small as one gets: a controller, a view, a layout; the middleware that
# Rails puts in front for production; neither database nor log.
require "logger"
require "securerandom"
require "rails"
require "action_controller/railtie"
require_relative "../lab"

# Whatever RACK_ENV says: a development Rails would look for changed files in each request.
Rails.env = "production"

# The application.
class LabRails < Rails::Application
  config.root = __dir__
  config.load_defaults 6.1
  config.eager_load = true
  config.consider_all_requests_local = false
  config.public_file_server.enabled = false
  config.action_controller.perform_caching = true
  config.cache_store = :null_store
  config.secret_key_base = SecureRandom.hex(64)
  config.logger = Logger.new(nil)
  config.log_level = :fatal
end

LabRails.initialize!

run Lab.around(LabRails)
