# frozen_string_literal: true

module ApplicationCable
  # What all channels have in common.
  class Channel < ActionCable::Channel::Base
  end
end
