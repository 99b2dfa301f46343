# ERB, over a compiler in Rust. A template becomes a Proc the first time it is used with these names
# of locals, and is only called from then on.

class ERB
  attr_accessor :filename
  attr_reader :src

  def initialize(template, trim_mode: nil, eoutvar: "_erbout")
    @src = "_erbout = ''; #{ERB.__compile(template, trim_mode)}_erbout"
    @src = "#{eoutvar} = #{@src}" if eoutvar != "_erbout"
    @procedures = {}
  end

  # `context` is what self is in the template: any object, or a Binding where mruby has one.
  def result(context = TOPLEVEL)
    return __run(context, {}) unless context.respond_to?(:local_variables) && context.respond_to?(:receiver)
    locals = {}
    context.local_variables.each { |name| locals[name] = context.local_variable_get(name) }
    __run(context.receiver, locals)
  end

  def result_with_hash(locals) = __run(TOPLEVEL, locals)

  # Both at once.
  def render(context = TOPLEVEL, **locals) = __run(context, locals)

  def run(context = TOPLEVEL) = print(result(context))

  def __run(context, locals)
    names = locals.keys
    procedure = @procedures[names] ||= __procedure(names)
    context.instance_exec(locals, &procedure)
  end

  def __procedure(names)
    assigned = names.map do |name|
      raise NameError, "no name for a local: #{name}" unless name.to_s.match?(/\A[a-z_]\w*\z/)
      "#{name} = _locals[#{name.to_sym.inspect}]; "
    end
    ERB.__procedure("proc { |_locals| #{assigned.join}#{@src} }", @filename || "(erb)")
  end
end

ERB::TOPLEVEL = self

module Kernel
  # mruby has no Binding: a template sees self, and not the locals around it.
  def binding = self unless method_defined?(:binding)
end
