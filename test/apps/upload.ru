# frozen_string_literal: true

# What the tests of uploads ask for: the body's digest and length, read in ways that apps read it.

# Not "digest" alone: Ruby then loads the class when it is first named, and two threads that name
# it at once are one too many.
require "digest/sha2"

def digest(env, body)
  "#{Digest::SHA256.hexdigest(body)} #{body.bytesize} #{env['CONTENT_LENGTH']}"
end

# In pieces, as multipart parsers read.
def pieces(env, input)
  digest = Digest::SHA256.new
  length = 0
  piece = +""
  while input.read(65_536, piece)
    digest << piece
    length += piece.bytesize
  end
  "#{digest.hexdigest} #{length} #{env['CONTENT_LENGTH']}"
end

# Outside of Lint, which hides what kind of object the input is.
class Careless
  KEPT = [] # rubocop:disable Style/MutableConstant

  def initialize(app)
    @app = app
  end

  def call(env)
    input = env["rack.input"]
    case env["PATH_INFO"]
    when "/keep" then KEPT << input
    when "/close" then input.close
    when "/replace" then env["rack.input"] = StringIO.new("replaced".b)
    when "/raise" then raise "as the test wants"
    when "/kind"
      return [200, { "content-type" => "text/plain" },
              ["#{input.class} #{input.external_encoding} #{input.binmode?} #{input.pos}"]]
    else return @app.call(env.merge("test.input" => input))
    end
    [200, { "content-type" => "text/plain" }, ["fine"]]
  end
end

use Careless
use Rack::Lint
run(lambda do |env|
  input = env["rack.input"]
  text = case env["PATH_INFO"]
         when "/digest" then digest(env, input.read)
         when "/pieces" then pieces(env, input)
         when "/each" then digest(env, input.enum_for(:each).to_a.join)
         when "/gets" then [input.gets, input.gets, input.read].map(&:bytesize).join(" ")
         when "/twice"
           first = input.read
           # Rack 3's Lint hides it.
           input.respond_to?(:rewind) ? input.rewind : env["test.input"].rewind
           digest(env, first == input.read ? first : "")
         when "/gate"
           File.read("gate")
           "opened"
         when "/ignore" then "ignored"
         when "/die-once"
           body = input.read
           unless File.exist?("died")
             File.write("died", "")
             Process.kill("KILL", Process.pid)
             sleep
           end
           digest(env, body)
         else "#{Process.pid} #{env['REQUEST_METHOD']} #{env['PATH_INFO']}"
         end
  File.write("called", "#{env['REQUEST_METHOD']} #{env['PATH_INFO']}\n", mode: "a")
  [200, { "content-type" => "text/plain" }, [text]]
end)
