# frozen_string_literal: true

# A modular Sinatra application: session, parameters, upload, stream, halt, error page.
require "sinatra/base"

# Of either Sinatra 3 or 4.
class Notes < Sinatra::Base
  enable :sessions
  set :session_secret, "0123456789abcdef" * 8
  set :host_authorization, permitted_hosts: []
  set :environment, :production

  get("/") { "visit #{session[:visits] = session[:visits].to_i + 1}" }
  get("/say/:word") { "#{params[:word]} #{params[:times].to_i * 2}" }
  post("/file") { "#{params[:file][:filename]} #{params[:file][:tempfile].read.bytesize}" }
  get("/halt") { halt 418, { "x-pot" => "tea" }, "short" }
  get("/boom") { raise "boom" }
  get("/stream") do
    stream do |out|
      out << "one "
      File.read(File.join(__dir__, "gate"))
      out << "two"
    end
  end
  error { "sorry" }
end

use Rack::Lint
run Notes
