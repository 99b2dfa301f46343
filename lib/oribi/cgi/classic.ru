# frozen_string_literal: true

# A CGI script as a Rack application: that of the directory in which the server runs.
require "acgi"

run ACGI.rack_app(File.expand_path("server.cgi"))
