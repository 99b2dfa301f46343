# frozen_string_literal: true

# Server-sent events: each line leaves when it is written.
class CountdownController < ApplicationController
  include ActionController::Live

  def show
    response.headers["Content-Type"] = "text/event-stream"
    # Without it Rack::ETag would collect the whole stream.
    response.headers["Last-Modified"] = Time.now.httpdate
    from = params.fetch(:from, 5).to_i.clamp(0, 60)
    from.downto(0) do |number|
      response.stream.write("data: #{number}\n\n")
      sleep 1 unless number.zero?
    end
  rescue ActionController::Live::ClientDisconnected
    logger.info { "nobody counts any more" }
  ensure
    response.stream.close
  end
end
