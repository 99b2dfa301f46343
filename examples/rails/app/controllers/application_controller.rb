# frozen_string_literal: true

# What all pages have in common.
class ApplicationController < ActionController::Base
end
