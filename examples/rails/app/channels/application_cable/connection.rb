# frozen_string_literal: true

module ApplicationCable
  # A WebSocket.
  class Connection < ActionCable::Connection::Base
  end
end
