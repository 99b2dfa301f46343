# frozen_string_literal: true

require_relative "test_helper"

class StoreTest < Minitest::Test
  PASSWORD = "correct horse"

  def setup
    @directory = Dir.mktmpdir("magtag-store")
    @path = File.join(@directory, "deep/er/magtag.db")
    @store = MagTag::Store.new(@path)
  end

  def teardown
    FileUtils.rm_rf(@directory)
  end

  def sign_up(name)
    @store.sign_up(name, PASSWORD)["id"]
  end

  def refused(&block)
    assert_raises(MagTag::Store::Refused, &block).message
  end

  def test_nothing_is_opened_before_it_is_needed
    refute_path_exists @path
    assert_empty @store
    assert_path_exists @path
  end

  def test_signing_up_and_logging_in
    id = sign_up("Ada")
    assert_equal id, @store.log_in("ada", PASSWORD)["id"]
    assert_nil @store.log_in("Ada", "wrong horse")
    assert_nil @store.log_in("Nobody", PASSWORD)
    refute_empty @store
  end

  def test_names_are_taken_once_whatever_their_case
    sign_up("Ada")
    assert_match(/ADA/, refused { sign_up("ADA") })
  end

  def test_bad_names_and_short_passwords
    ["", "a", "a" * 21, "a b", "a\nb", "<b>", "é" * 3].each do |name|
      assert_match(/2 to 20/, refused { sign_up(name) }, name.inspect)
    end
    assert_match(/at least 8/, refused { @store.sign_up("ada", "short") })
  end

  def test_passwords_are_not_in_the_file
    sign_up("Ada")
    files = Dir.children(File.dirname(@path)).map { |name| File.join(File.dirname(@path), name) }
    refute(files.any? { |file| File.binread(file).include?(PASSWORD) })
  end

  def test_a_post_has_at_most_140_characters_however_wide
    id = sign_up("Ada")
    @store.post(id, "é🎺" * 70)
    assert_match(/141 characters/, refused { @store.post(id, "x" * 141) })
    assert_match(/nothing/, refused { @store.post(id, " \r\n ") })
    assert_equal 1, @store.counts(id)["posts"]
  end

  def test_line_ends_count_once_and_broken_text_is_mended
    id = sign_up("Ada")
    @store.post(id, "#{"x" * 69}\r\n#{"y" * 70}")
    @store.post(id, +"bro\xFFken\0")
    assert_equal ["broken", "#{"x" * 69}\n#{"y" * 70}"], bodies(@store.posts_of(id))
  end

  def test_the_timeline_is_mine_and_of_those_i_follow
    ada, bob, eve = %w[Ada Bob Eve].map { |name| sign_up(name) }
    @store.follow(ada, bob)
    @store.follow(ada, bob)
    @store.post(eve, "from eve")
    @store.post(bob, "from bob")
    @store.post(ada, "from ada")
    assert_equal ["from ada", "from bob"], bodies(@store.timeline(ada))
    @store.unfollow(ada, bob)
    assert_equal ["from ada"], bodies(@store.timeline(ada))
  end

  def test_the_timeline_has_the_newest_twenty
    ada = sign_up("Ada")
    25.times { |n| @store.post(ada, "post #{n}") }
    assert_equal (5..24).map { |n| "post #{n}" }.reverse, bodies(@store.timeline(ada))
  end

  def test_following
    ada, bob, eve = %w[Ada Bob Eve].map { |name| sign_up(name) }
    assert_equal %w[Eve Bob], @store.strangers(ada)
    @store.follow(ada, eve)
    assert @store.follows?(ada, eve)
    refute @store.follows?(eve, ada)
    assert_equal %w[Bob], @store.strangers(ada)
    assert_equal({ "posts" => 0, "following" => 1, "followers" => 0 }, @store.counts(ada))
    assert_equal({ "posts" => 0, "following" => 0, "followers" => 1 }, @store.counts(eve))
    refused { @store.follow(bob, bob) }
  end

  def test_samples_come_whole_and_can_log_in
    password = MagTag::Samples.load(@store)
    MagTag::Samples::PEOPLE.each { |name| assert @store.log_in(name, password), name }
    assert_raises(MagTag::Store::Refused) { MagTag::Samples.load(@store) }
  end

  # What a prefork server does: the parent has the file open, and the children write all at once.
  def test_many_processes_write_at_once
    @store.empty?
    children = Array.new(4) do |n|
      fork do
        id = sign_up("child#{n}")
        20.times { |post| @store.post(id, "post #{post}") }
        exit!(0)
      end
    end
    assert(children.all? { |pid| Process.wait2(pid).last.success? })
    ids = Array.new(4) { |n| @store.user_named("child#{n}")["id"] }
    assert_equal([20] * 4, ids.map { |id| @store.counts(id)["posts"] })
  end

  def test_many_processes_open_a_new_file_at_once
    children = Array.new(6) { |n| fork { exit!(sign_up("child#{n}") ? 0 : 1) } }
    assert(children.all? { |pid| Process.wait2(pid).last.success? })
  end

  private

  def bodies(posts)
    posts.map { |post| post["body"] }
  end
end
