# frozen_string_literal: true

require "fileutils"
require "monitor"
require "sqlite3"
require_relative "password"

module MagTag
  # Everything MagTag knows: users, posts, and who follows whom, in one SQLite file.
  #
  # The file is opened at first use and again after a fork: a connection must not be shared between
  # processes. Threads of a process take turns.
  class Store
    NAME = /\A[A-Za-z0-9_]{2,20}\z/
    PASSWORD = (8..200)
    POST = 140
    PAGE = 20

    # What a person may read and mend.
    class Refused < StandardError; end

    SCHEMA = <<~SQL
      CREATE TABLE users (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE COLLATE NOCASE,
        password TEXT NOT NULL,
        joined_at INTEGER NOT NULL
      );
      CREATE TABLE posts (
        id INTEGER PRIMARY KEY,
        user_id INTEGER NOT NULL REFERENCES users (id),
        body TEXT NOT NULL,
        posted_at INTEGER NOT NULL
      );
      CREATE INDEX posts_by_user ON posts (user_id, id);
      CREATE TABLE follows (
        follower_id INTEGER NOT NULL REFERENCES users (id),
        followed_id INTEGER NOT NULL REFERENCES users (id),
        PRIMARY KEY (follower_id, followed_id)
      ) WITHOUT ROWID;
      CREATE INDEX follows_by_followed ON follows (followed_id);
      PRAGMA user_version = 1;
    SQL

    TIMELINE = <<~SQL.freeze
      SELECT posts.id, posts.body, posts.posted_at, users.name
      FROM posts JOIN users ON users.id = posts.user_id
      WHERE posts.user_id = :me
         OR posts.user_id IN (SELECT followed_id FROM follows WHERE follower_id = :me)
      ORDER BY posts.id DESC LIMIT #{PAGE}
    SQL

    POSTS_OF = <<~SQL.freeze
      SELECT posts.id, posts.body, posts.posted_at, users.name
      FROM posts JOIN users ON users.id = posts.user_id
      WHERE users.id = ? ORDER BY posts.id DESC LIMIT #{PAGE}
    SQL

    COUNTS = <<~SQL
      SELECT (SELECT count(*) FROM posts WHERE user_id = :id) AS posts,
             (SELECT count(*) FROM follows WHERE follower_id = :id) AS following,
             (SELECT count(*) FROM follows WHERE followed_id = :id) AS followers
    SQL

    STRANGERS = <<~SQL
      SELECT name FROM users
      WHERE id <> :me AND id NOT IN (SELECT followed_id FROM follows WHERE follower_id = :me)
      ORDER BY id DESC LIMIT :limit
    SQL

    attr_reader :path

    def initialize(path)
      @path = path
      @turn = Monitor.new
    end

    def empty?
      value("SELECT count(*) FROM users").zero?
    end

    def user(id)
      row("SELECT id, name, joined_at FROM users WHERE id = ?", id) if id
    end

    def user_named(name)
      row("SELECT id, name, joined_at FROM users WHERE name = ?", name)
    end

    def sign_up(name, password)
      raise Refused, "A name has 2 to 20 letters, digits or underscores." unless NAME.match?(name)
      unless PASSWORD.cover?(password.length)
        raise Refused, "A password has at least #{PASSWORD.min} characters."
      end

      run("INSERT INTO users (name, password, joined_at) VALUES (?, ?, ?)",
          name, Password.hash(password), Time.now.to_i)
      user_named(name)
    rescue SQLite3::ConstraintException
      raise Refused, "Somebody is called #{name} already."
    end

    def log_in(name, password)
      found = row("SELECT id, name, password FROM users WHERE name = ?", name)
      found if Password.match?(password, found ? found["password"] : Password::NOBODY)
    end

    def post(user_id, text, posted_at: Time.now.to_i)
      body = tidy(text)
      raise Refused, "There is nothing in it yet." if body.empty?
      if body.length > POST
        raise Refused, "#{body.length} characters; a tag is small, #{POST} at most."
      end

      run("INSERT INTO posts (user_id, body, posted_at) VALUES (?, ?, ?)", user_id, body, posted_at)
    end

    def follow(follower_id, followed_id)
      raise Refused, "You see your own posts anyway." if follower_id == followed_id

      run("INSERT OR IGNORE INTO follows VALUES (?, ?)", follower_id, followed_id)
    end

    def unfollow(follower_id, followed_id)
      run("DELETE FROM follows WHERE follower_id = ? AND followed_id = ?", follower_id, followed_id)
    end

    def follows?(follower_id, followed_id)
      value("SELECT count(*) FROM follows WHERE follower_id = ? AND followed_id = ?",
            follower_id, followed_id).positive?
    end

    def timeline(user_id)
      rows(TIMELINE, { me: user_id })
    end

    def posts_of(user_id)
      rows(POSTS_OF, user_id)
    end

    def counts(user_id)
      row(COUNTS, { id: user_id })
    end

    # The newest users that this one does not follow.
    def strangers(user_id, limit = 5)
      rows(STRANGERS, { me: user_id, limit: limit }).map { |found| found["name"] }
    end

    # All that the block does happens, or nothing.
    def transaction(&block)
      @turn.synchronize { connection.transaction(:immediate, &block) }
    end

    private

    # Browsers send line ends as CR LF; a person counts one.
    def tidy(text)
      text.scrub("").delete("\0").gsub(/\r\n?/, "\n").strip
    end

    # Values go in by place or, in a hash, by name; rows come out as plain hashes.
    def rows(sql, *values)
      @turn.synchronize { connection.execute(sql, values) }
    end

    def row(sql, *values)
      rows(sql, *values).first
    end

    def value(sql, *values)
      row(sql, *values).each_value.first
    end

    def run(sql, *values)
      rows(sql, *values)
      nil
    end

    # The connection of a parent is kept but never touched again: closing it in the child would
    # drop the locks that the parent holds on the file.
    def connection
      return @connection if @owner == Process.pid

      @inherited = @connection
      @connection = open
      @owner = Process.pid
      @connection
    end

    # One process at a time: changing the journal mode and creating the tables want the file alone.
    def open
      FileUtils.mkdir_p(File.dirname(@path))
      File.open("#{@path}.lock", File::RDWR | File::CREAT, 0o600) do |lock|
        lock.flock(File::LOCK_EX)
        database = SQLite3::Database.new(@path, results_as_hash: true)
        database.busy_timeout = 5_000
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("PRAGMA foreign_keys = ON")
        create(database)
        database
      end
    end

    def create(database)
      return unless database.get_first_value("PRAGMA user_version").zero?

      database.transaction { database.execute_batch(SCHEMA) }
    end
  end
end
