# frozen_string_literal: true

Rails.application.routes.draw do
  root "board#show"
  post "things", to: "board#bring"
  get "countdown", to: "countdown#show"
end
