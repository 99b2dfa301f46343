# frozen_string_literal: true

Rails.application.routes.draw { root to: "pages#hello" }
