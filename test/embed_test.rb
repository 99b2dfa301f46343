# frozen_string_literal: true

require "helper_examples"
require "open3"

# examples/embed: another program that the server is a part of.
class EmbedTest < Helper::ExampleCase
  program "embed"

  def test_an_app_with_a_class_in_rust
    assert_equal "HELLO!\n", ask("/shout/hello").body
    assert_equal "404", ask("/elsewhere").code
  end

  def test_an_asset_without_a_worker
    answer = ask("/")
    assert_equal ["200", "text/html; charset=utf-8"], [answer.code, answer["content-type"]]
    assert_equal answer.body, ask("/index.html").body
    assert_equal "304", ask("/", "if-none-match" => answer["etag"]).code
    head = ask("/index.html", method: :head)
    assert_equal [answer["content-length"], nil], [head["content-length"], head.body]
    assert_equal "405", ask("/", method: :post).code
  end

  def test_workers_come_again_and_generations_change
    worker = server.workers(2).first
    Process.kill(:KILL, worker.pid)
    Helper.wait_until("another worker") do
      server.find("worker").none? { |one| one.same?(worker) } && server.workers(2)
    end
    assert_equal "A!\n", ask("/shout/a").body
    server.signal(:USR2)
    server.workers(2, generation: 2)
    assert_equal "B!\n", ask("/shout/b").body
  end

  def test_it_ends_in_order
    server.signal(:TERM)
    assert_equal 0, server.wait
    assert_empty server.left_over
  ensure
    self.class.stop
  end

  def test_what_is_wrong_is_one_line
    program = self.class.shared && "/proc/#{server.pid}/exe"
    output, status = Open3.capture2e({ "BIND" => "nowhere" }, program)
    assert_equal 1, status.exitstatus
    assert_match(/\AError: .*nowhere/, output)
    assert_equal 1, output.lines.size, output
  end
end
