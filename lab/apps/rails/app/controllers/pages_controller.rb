# frozen_string_literal: true

# The one page.
class PagesController < ActionController::Base
  layout "page"

  def hello
    @names = %w[Sirius Canopus Arcturus Vega Capella Rigel Procyon Achernar]
  end
end
