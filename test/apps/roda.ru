# frozen_string_literal: true

# A routing tree with Roda.
require "roda"

# Route, parameters, JSON, stream.
class Tree < Roda
  plugin :json
  plugin :streaming
  plugin :halt

  route do |r|
    r.root { "root" }
    r.on("items", Integer) do |number|
      r.get { { "item" => number } }
      r.post { "#{number}: #{r.params['text']}" }
    end
    r.get("stream") { stream { |out| 3.times { |number| out << "#{number} " } } }
    r.get("halt") { r.halt(403) }
  end
end

use Rack::Lint
run Tree.freeze.app
