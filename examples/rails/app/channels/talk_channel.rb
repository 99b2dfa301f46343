# frozen_string_literal: true

# What one says, all hear.
class TalkChannel < ApplicationCable::Channel
  def subscribed
    stream_from "talk"
  end

  def say(data)
    ActionCable.server.broadcast("talk", { text: data["text"].to_s.first(500) })
  end
end
