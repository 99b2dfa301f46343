# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "http"
require_relative "proc_tree"

module Bench
  # A server (and nginx in front of it, if the stack has one): what it is made of.
  Stack = Struct.new(:kind, :app, :workers, :nginx, keyword_init: true) do
    def to_s
      [kind, nginx && "nginx", nginx == :keepalive && "upstream keep-alive"].select(&:itself)
                                                                            .join(" + ")
    end
  end

  # A stack that runs: started, waited for, ended. Each measured cell has a fresh one, so that no
  # server gains or loses by what was asked of it before.
  class Running
    START_WITHIN = 20
    STOP_WITHIN = 10

    attr_reader :target, :roots, :booted

    def initialize(stack, env: {})
      @stack = stack
      @env = { "RACK_ENV" => "production", "BUNDLE_GEMFILE" => nil }.merge(env)
      @dir = Dir.mktmpdir("oribi-bench-")
      @roots = []
    end

    def start(answer: "/")
      begun = clock
      @target = listen = @stack.nginx ? "unix://#{@dir}/app.sock" : tcp
      spawn_as(@stack.kind.to_s, Commands.public_send(@stack.kind, @stack, listen, @dir))
      wait_for(listen, answer)
      @booted = clock - begun
      start_nginx(listen, answer) if @stack.nginx
      self
    end

    # Waits until every worker has shown itself, for applications that tell their pid.
    def all_workers_up
      seen = {}
      deadline = clock + START_WITHIN
      until seen.size >= @stack.workers
        raise "only #{seen.size} of #{@stack.workers} workers answer" if clock > deadline

        asked = Array.new(@stack.workers * 2) { Thread.new { Http.get(@target, "/pid") } }
        asked.filter_map(&:value).each { |status, body| seen[body[/\d+/]] = true if status == 200 }
      end
    end

    def cpu
      ProcTree.cpu(@roots)
    end

    def processes
      ProcTree.of(@roots).map(&:pid)
    end

    # Ends the stack and says what was not as it should be: nothing, one hopes.
    def stop
      pids = processes
      # nginx first: it is the client of the other.
      complaints = @roots.reverse.filter_map { |pid| end_process(pid) }
      # What is left of the tree would disturb the next cell, and is a bug to hear about.
      left = pids.select { |pid| ProcTree.alive?(pid) && !gone_soon?(pid) }
      left.each { |pid| signal("KILL", pid) }
      complaints << "#{left.size} processes were left behind" if left.any? && complaints.empty?
      complaints
    ensure
      FileUtils.remove_entry(@dir)
    end

    private

    def tcp
      "tcp://127.0.0.1:#{Http.free_port}"
    end

    def spawn_as(name, command)
      @log = "#{@dir}/#{name}.log"
      options = { in: File::NULL, out: @log, err: %i[child out], pgroup: true }
      options[:chdir] = File.dirname(@stack.app) if @stack.app
      @roots << Process.spawn(@env, *command, options)
    end

    def start_nginx(upstream, answer)
      @target = tcp
      Nginx.write(@dir, @target, upstream, keepalive: @stack.nginx == :keepalive)
      spawn_as("nginx", %W[nginx -p #{@dir} -c #{@dir}/nginx.conf -e #{@dir}/error.log])
      wait_for(@target, answer)
    end

    def wait_for(target, path)
      deadline = clock + START_WITHIN
      # A redirect is an answer too: that is what the example's start page gives a stranger.
      until (200...400).cover?(Http.get(target, path)&.first)
        raise "#{@stack} has ended:\n#{log_tail}" if Process.wait(@roots.last, Process::WNOHANG)
        raise "#{@stack} does not answer:\n#{log_tail}" if clock > deadline

        sleep 0.002
      end
    end

    def log_tail
      File.readlines(@log).last(12).join
    end

    def end_process(pid)
      title = ProcTree.title(pid)[/\S+ \S+/]
      signal("TERM", pid)
      deadline = clock + STOP_WITHIN
      until reaped?(pid)
        if clock > deadline
          signal("KILL", pid)
          Process.wait(pid)
          return "#{title} did not end within #{STOP_WITHIN} s of TERM"
        end
        sleep 0.01
      end
    end

    def reaped?(pid)
      Process.wait(pid, Process::WNOHANG)
    rescue Errno::ECHILD
      true
    end

    def gone_soon?(pid)
      100.times { ProcTree.alive?(pid) ? sleep(0.01) : (return true) }
      false
    end

    def signal(name, pid)
      Process.kill(name, pid)
    rescue Errno::ESRCH
      nil # ended by itself
    end

    def clock
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end

  # The command line of each kind of server.
  module Commands
    ROOT = File.expand_path("../..", __dir__)

    module_function

    def oribi(stack, listen, _dir)
      [Gem.ruby, "#{ROOT}/exe/oribi", "-e", "production", "-b", listen, "-w", stack.workers.to_s,
       stack.app]
    end

    # Single mode for one worker: Puma is at its best without a cluster then. A cluster loads the
    # application once before it forks, as the others do.
    def puma(stack, listen, _dir)
      cluster = stack.workers == 1 ? %w[-w 0] : ["-w", stack.workers.to_s, "--preload"]
      ["puma", "--no-config", "-e", "production", "-b", listen, *cluster, "-t", "1:1", stack.app]
    end

    def unicorn(stack, listen, dir)
      address = listen.sub(%r{\A(unix|tcp)://}, "")
      File.write("#{dir}/unicorn.rb", <<~CONFIG)
        worker_processes #{stack.workers}
        preload_app true
        listen #{address.dump}
      CONFIG
      ["unicorn", "-E", "production", "-c", "#{dir}/unicorn.rb", stack.app]
    end

    def hyper(stack, listen, _dir)
      [Build.binary("hyper_hello"), listen[/\d+\z/], stack.workers.to_s]
    end
  end

  # The set-up of the Rhebok README: TCP in front, the server's unix socket behind.
  module Nginx
    module_function

    def write(dir, listen, upstream, keepalive:)
      File.write("#{dir}/nginx.conf", <<~CONFIG)
        #{"user root;" if Process.uid.zero?}
        daemon off;
        worker_processes 2;
        pid #{dir}/nginx.pid;
        error_log #{dir}/error.log;
        events { worker_connections 8192; }
        http {
          access_log off;
          sendfile on;
          tcp_nopush on;
          tcp_nodelay on;
          etag off;
          client_body_temp_path #{dir}/body;
          proxy_temp_path #{dir}/proxy;
          fastcgi_temp_path #{dir}/fastcgi;
          scgi_temp_path #{dir}/scgi;
          uwsgi_temp_path #{dir}/uwsgi;
          upstream app {
            server #{upstream.sub("unix://", "unix:")};
            #{"keepalive 512;" if keepalive}
          }
          server {
            listen #{listen.delete_prefix("tcp://")};
            location / {
              proxy_pass http://app;
              #{"proxy_http_version 1.1;\nproxy_set_header Connection '';" if keepalive}
            }
          }
        }
      CONFIG
    end
  end
end
