# frozen_string_literal: true

require_relative "magtag"

run MagTag::App
