# frozen_string_literal: true

require "securerandom"

module MagTag
  # A few people with something to say, for a first look around.
  module Samples
    PEOPLE = %w[marimba tenor_drum viola oboe celesta].freeze

    FOLLOWS = {
      "marimba" => %w[viola oboe],
      "tenor_drum" => %w[marimba],
      "viola" => %w[marimba celesta oboe],
      "oboe" => %w[viola],
      "celesta" => PEOPLE - %w[celesta]
    }.freeze

    # Minutes ago, who, what.
    POSTS = [
      [2_900, "oboe", "Everybody tunes to me. No pressure at all."],
      [1_710, "tenor_drum", "Small rooms, soft mallets. Learned that one the loud way."],
      [1_440, "viola", "Counted forty bars of rest today. Came in on forty-one. Bliss."],
      [700, "celesta", "Somebody asked whether I am a piano. I am a cupboard full of bells."],
      [190, "marimba", "New bars are in. Rosewood smells better than it has any right to."],
      [64, "viola", "If you wait your turn and the line is fair, waiting is just listening."],
      [41, "oboe", "Reed number nine of the week. This one might live until Friday."],
      [12, "tenor_drum", "<b>Bold</b> is what I am, not what I type. & proud of it."],
      [3, "marimba", "Rehearsal at six!\nBring water, and the good pencils."]
    ].freeze

    module_function

    # Returns the password that all of them share. It is made up on the spot: nobody can guess the
    # way in to a copy that happens to be public.
    def load(store)
      password = SecureRandom.alphanumeric(12).downcase
      store.transaction do
        ids = PEOPLE.to_h { |name| [name, store.sign_up(name, password)["id"]] }
        FOLLOWS.each { |who, whom| whom.each { |name| store.follow(ids[who], ids[name]) } }
        now = Time.now.to_i
        POSTS.each { |ago, who, text| store.post(ids[who], text, posted_at: now - (ago * 60)) }
      end
      password
    end
  end
end
