# frozen_string_literal: true

require "digest"

# The board itself: a session that counts, and an upload.
class BoardController < ApplicationController
  def show
    session[:visits] = session[:visits].to_i + 1
    @thing = session[:thing]
  end

  # The file is read in parts, for it may be large.
  def bring
    file = params.require(:thing)
    digest = Digest::SHA256.new
    while (part = file.read(64 * 1024))
      digest << part
    end
    session[:thing] = { "name" => file.original_filename, "size" => file.size,
                        "sha256" => digest.hexdigest }
    redirect_to root_path, status: :see_other
  end
end
