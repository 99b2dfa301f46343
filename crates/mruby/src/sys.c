/*
 * mruby for Rust: macros and inline functions as functions, and every call that may raise inside a
 * protected one. mruby raises with longjmp, which must not pass over a frame of Rust: so nothing
 * raises into Rust, and what Rust wants raised is raised here, when its frame is gone.
 */
#include <mruby.h>
#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/compile.h>
#include <mruby/data.h>
#include <mruby/dump.h>
#include <mruby/error.h>
#include <mruby/hash.h>
#include <mruby/irep.h>
#include <mruby/proc.h>
#include <mruby/string.h>
#include <mruby/variable.h>
#include <mruby/version.h>
#if MRUBY_RELEASE_NO >= 30200
/* `mrb_dump_irep` has gone there. */
#include <mruby/internal.h>
#endif
#include <stdio.h>
#include <string.h>

/* Rust knows values as 64 bits. */
mrb_static_assert(sizeof(mrb_value) == 8, "this mruby's values are not words");

/* What a protected call is to do, and with what; the order is that of `Code` in sys.rs. */
enum code {
  CALL, STRING, SYMBOL, NAME, FLOAT, INTEGER, ARRAY, PUSH, HASH, SET, GET, PAIRS,
  CLASS, DEFINE_CLASS, DEFINE_MODULE, METHOD, SINGLETON, CONSTANT, SET_CONSTANT, WRAP,
  RAISABLE, REGISTER, UNREGISTER, RUN, INSTANCE, SET_INSTANCE, GLOBAL, SET_GLOBAL, TEXT,
  RESPONDS, KIND, COLLECT, FILL, FREEZE, ADOPT
};

struct pair {
  mrb_value key;
  const char *text;
  size_t length;
};

struct op {
  int code;
  mrb_value a, b, c;
  const char *text;
  size_t length;
  const mrb_value *list;
  size_t count;
  int64_t number;
  double real;
  void *pointer;
  mrb_value result;
};

/* In sys.rs. */
int oribi_mruby_call(mrb_state *, void *method, mrb_value self, mrb_int argc, const mrb_value *argv,
                     mrb_value block, mrb_value *result);
void oribi_mruby_drop(mrb_state *, void *);

static const struct mrb_data_type boxed = { "oribi", oribi_mruby_drop };

static struct RClass *class_of_value(mrb_state *mrb, mrb_value value)
{
  if (mrb_type(value) != MRB_TT_CLASS && mrb_type(value) != MRB_TT_MODULE &&
      mrb_type(value) != MRB_TT_SCLASS) {
    mrb_raise(mrb, mrb_exc_get_id(mrb, mrb_intern_lit(mrb, "TypeError")), "not a class or module");
  }
  return mrb_class_ptr(value);
}

/* A method that is written in Rust: its address and how many arguments it takes are in its
   environment. */
static mrb_value method(mrb_state *mrb, mrb_value self)
{
  void *address = mrb_cptr(mrb_proc_cfunc_env_get(mrb, 0));
  mrb_int least = mrb_integer(mrb_proc_cfunc_env_get(mrb, 1));
  mrb_int most = mrb_integer(mrb_proc_cfunc_env_get(mrb, 2));
  const mrb_value *argv;
  mrb_int argc;
  mrb_value block = mrb_nil_value(), result = mrb_nil_value();
  /* A copy, since the stack may move while the method runs. */
  mrb_get_args(mrb, "*&", &argv, &argc, &block);
  if (argc < least || (most >= 0 && argc > most)) {
    mrb_argnum_error(mrb, argc, (int)least, (int)most);
  }
  int arena = mrb_gc_arena_save(mrb);
  int raised = oribi_mruby_call(mrb, address, self, argc, argv, block, &result);
  mrb_gc_arena_restore(mrb, arena);
  mrb_gc_protect(mrb, result);
  if (raised) {
    mrb_exc_raise(mrb, result);
  }
  return result;
}

static void define(mrb_state *mrb, struct RClass *class, struct op *op)
{
  mrb_value env[3] = { mrb_cptr_value(mrb, op->pointer), op->list[0], op->list[1] };
  struct RProc *proc = mrb_proc_new_cfunc_with_env(mrb, method, 3, env);
  mrb_method_t made;
  MRB_METHOD_FROM_PROC(made, proc);
  mrb_define_method_raw(mrb, class, mrb_intern(mrb, op->text, op->length), made);
}

static mrb_value find_or_define(mrb_state *mrb, struct op *op)
{
  mrb_sym name = mrb_intern(mrb, op->text, op->length);
  struct RClass *outer = mrb_nil_p(op->a) ? mrb->object_class : class_of_value(mrb, op->a);
  mrb_value there = mrb_obj_value(outer);
  mrb_bool exists = mrb_const_defined_at(mrb, there, name);
  if (exists) {
    return mrb_const_get(mrb, there, name);
  }
  if (op->code == DEFINE_MODULE) {
    return mrb_obj_value(mrb_define_module_under_id(mrb, outer, name));
  }
  struct RClass *super = mrb_nil_p(op->b) ? mrb->object_class : class_of_value(mrb, op->b);
  return mrb_obj_value(mrb_define_class_under_id(mrb, outer, name, super));
}

static mrb_value pairs(mrb_state *mrb, mrb_value hash)
{
  mrb_value keys = mrb_hash_keys(mrb, hash), list = mrb_ary_new_capa(mrb, RARRAY_LEN(keys) * 2);
  for (mrb_int i = 0; i < RARRAY_LEN(keys); i++) {
    mrb_value key = RARRAY_PTR(keys)[i];
    mrb_ary_push(mrb, list, key);
    mrb_ary_push(mrb, list, mrb_hash_get(mrb, hash, key));
  }
  return list;
}

/* New strings for many keys of a hash at once. */
static void fill(mrb_state *mrb, mrb_value hash, const struct pair *pair, size_t count)
{
  int arena = mrb_gc_arena_save(mrb);
  for (; count > 0; count--, pair++) {
    mrb_hash_set(mrb, hash, pair->key, mrb_str_new(mrb, pair->text, pair->length));
    mrb_gc_arena_restore(mrb, arena);
  }
}

static mrb_value run(mrb_state *mrb, const void *code, size_t length)
{
  mrb_irep *irep = mrb_read_irep_buf(mrb, code, length);
  if (!irep) {
    mrb_raise(mrb, mrb_exc_get_id(mrb, mrb_intern_lit(mrb, "ScriptError")), "not bytecode of ours");
  }
  struct RProc *proc = mrb_proc_new(mrb, irep);
  mrb_irep_decref(mrb, irep);
  /* What it defines is at the top, whoever has loaded it. */
  MRB_PROC_SET_TARGET_CLASS(proc, mrb->object_class);
  proc->upper = NULL;
  mrb_value value = mrb_top_run(mrb, proc, mrb_top_self(mrb), 0);
  if (mrb->exc) {
    mrb_value exception = mrb_obj_value(mrb->exc);
    mrb->exc = NULL;
    mrb_exc_raise(mrb, exception);
  }
  return value;
}

static mrb_value wrap(mrb_state *mrb, struct RClass *class, void *pointer)
{
  return mrb_obj_value(mrb_data_object_alloc(mrb, class, pointer, &boxed));
}

static void must_be_instance(mrb_state *mrb, mrb_value value)
{
  if (mrb_immediate_p(value) || mrb_type(value) < MRB_TT_OBJECT) {
    mrb_raise(mrb, mrb_exc_get_id(mrb, mrb_intern_lit(mrb, "TypeError")),
              "has no instance variables");
  }
}

static mrb_value define_or_find(mrb_state *mrb, struct op *op)
{
  struct RClass *class;
  switch (op->code) {
  case CLASS:
    return mrb_obj_value(mrb_class_get_id(mrb, mrb_intern(mrb, op->text, op->length)));
  case METHOD:
    define(mrb, class_of_value(mrb, op->a), op);
    break;
  case SINGLETON:
    class = mrb_class_ptr(mrb_singleton_class(mrb, op->a));
    define(mrb, class, op);
    break;
  case CONSTANT:
    return mrb_const_get(mrb, op->a, mrb_intern(mrb, op->text, op->length));
  case SET_CONSTANT:
    mrb_const_set(mrb, op->a, mrb_intern(mrb, op->text, op->length), op->b);
    break;
  case WRAP:
    class = class_of_value(mrb, op->a);
    MRB_SET_INSTANCE_TT(class, MRB_TT_DATA);
    return op->pointer ? wrap(mrb, class, op->pointer) : mrb_nil_value();
  case RAISABLE:
    return mrb_exc_new_str(mrb, class_of_value(mrb, op->a), op->b);
  case ADOPT:
    if (!mrb_data_p(op->a) || DATA_TYPE(op->a)) {
      mrb_raise(mrb, mrb_exc_get_id(mrb, mrb_intern_lit(mrb, "TypeError")),
                "cannot hold data, or holds some");
    }
    mrb_data_init(op->a, op->pointer, &boxed);
    break;
  default:
    return find_or_define(mrb, op);
  }
  return mrb_nil_value();
}

static mrb_value body(mrb_state *mrb, void *data)
{
  struct op *op = data;
#ifdef ORIBI_MRUBY_CHECK
  mrb_full_gc(mrb);
#endif
  switch (op->code) {
  case CALL:
    return mrb_funcall_with_block(mrb, op->a, mrb_intern(mrb, op->text, op->length),
                                  (mrb_int)op->count, op->list, op->b);
  case STRING:
    return mrb_str_new(mrb, op->text, op->length);
  case SYMBOL:
    return mrb_symbol_value(mrb_intern(mrb, op->text, op->length));
  case NAME:
    return mrb_sym_str(mrb, mrb_symbol(op->a));
  case FLOAT:
    return mrb_float_value(mrb, op->real);
  case INTEGER:
    return mrb_int_value(mrb, op->number);
  case ARRAY:
    return op->count > 0 ? mrb_ary_new_from_values(mrb, (mrb_int)op->count, op->list)
                         : mrb_ary_new_capa(mrb, op->number);
  case PUSH:
    mrb_ary_push(mrb, op->a, op->b);
    break;
  case HASH:
    return mrb_nil_p(op->a) ? mrb_hash_new_capa(mrb, op->number) : mrb_hash_dup(mrb, op->a);
  case SET:
    mrb_hash_set(mrb, op->a, op->b, op->c);
    break;
  case GET:
    return mrb_hash_get(mrb, op->a, op->b);
  case PAIRS:
    return pairs(mrb, op->a);
  case FILL:
    fill(mrb, op->a, op->pointer, op->count);
    break;
  case REGISTER:
    mrb_gc_register(mrb, op->a);
    break;
  case UNREGISTER:
    mrb_gc_unregister(mrb, op->a);
    break;
  case RUN:
    return run(mrb, op->text, op->length);
  case INSTANCE:
    must_be_instance(mrb, op->a);
    return mrb_iv_get(mrb, op->a, mrb_intern(mrb, op->text, op->length));
  case SET_INSTANCE:
    must_be_instance(mrb, op->a);
    mrb_iv_set(mrb, op->a, mrb_intern(mrb, op->text, op->length), op->b);
    break;
  case GLOBAL:
    return mrb_gv_get(mrb, mrb_intern(mrb, op->text, op->length));
  case SET_GLOBAL:
    mrb_gv_set(mrb, mrb_intern(mrb, op->text, op->length), op->a);
    break;
  case TEXT:
    return mrb_obj_as_string(mrb, op->a);
  case RESPONDS:
    return mrb_bool_value(mrb_respond_to(mrb, op->a, mrb_intern(mrb, op->text, op->length)));
  case KIND:
    return mrb_bool_value(mrb_obj_is_kind_of(mrb, op->a, class_of_value(mrb, op->b)));
  case COLLECT:
    mrb_full_gc(mrb);
    break;
  case FREEZE:
    return mrb_obj_freeze(mrb, op->a);
  default:
    return define_or_find(mrb, op);
  }
  return mrb_nil_value();
}

/* Does what is asked; 1 if that raised, and then the result is the exception. */
int oribi_mrb_do(mrb_state *mrb, struct op *op)
{
  mrb_bool failed = FALSE;
  op->result = mrb_protect_error(mrb, body, op, &failed);
  mrb->exc = NULL;
  return failed;
}

mrb_state *oribi_mrb_open(mrb_allocf allocate, void *data)
{
#ifdef ORIBI_MRUBY_CHECK
  /* Memory that checkers know. */
  allocate = mrb_default_allocf;
#endif
  return mrb_open_allocf(allocate, data);
}

void oribi_mrb_close(mrb_state *mrb)
{
  mrb_close(mrb);
}

/* Not mruby's own `ud`: that comes behind what depends on how the library was configured (trixie's has
   hooks for debuggers), which its headers do not know. So do nomem_err and stack_err; use nothing there.
   The allocator's data begin with a place for it. */
void *oribi_mrb_data(mrb_state *mrb)
{
  return *(void **)mrb->allocf_ud;
}

void oribi_mrb_set_data(mrb_state *mrb, void *data)
{
  *(void **)mrb->allocf_ud = data;
}

void oribi_mrb_collector(mrb_state *mrb, int on)
{
  mrb->gc.disabled = !on;
}

size_t oribi_mrb_objects(mrb_state *mrb)
{
  return mrb->gc.live;
}

int oribi_mrb_arena_save(mrb_state *mrb)
{
  return mrb_gc_arena_save(mrb);
}

void oribi_mrb_arena_restore(mrb_state *mrb, int index)
{
  mrb_gc_arena_restore(mrb, index);
}

/* The order is that of `kind_of` in sys.rs. */
int oribi_mrb_kind(mrb_value value)
{
  switch (mrb_type(value)) {
  case MRB_TT_FALSE: return mrb_nil_p(value) ? 0 : 1;
  case MRB_TT_TRUE: return 1;
  case MRB_TT_INTEGER: return 2;
  case MRB_TT_FLOAT: return 3;
  case MRB_TT_SYMBOL: return 4;
  case MRB_TT_STRING: return 5;
  case MRB_TT_ARRAY: return 6;
  case MRB_TT_HASH: return 7;
  case MRB_TT_PROC: return 8;
  case MRB_TT_CLASS:
  case MRB_TT_MODULE:
  case MRB_TT_SCLASS: return 9;
  default: return 10;
  }
}

int64_t oribi_mrb_integer(mrb_value value)
{
  return mrb_integer(value);
}

double oribi_mrb_float(mrb_value value)
{
  return mrb_float(value);
}

const char *oribi_mrb_bytes(mrb_value value, size_t *length)
{
  *length = RSTRING_LEN(value);
  return RSTRING_PTR(value);
}

size_t oribi_mrb_length(mrb_value array)
{
  return RARRAY_LEN(array);
}

mrb_value oribi_mrb_entry(mrb_value array, size_t index)
{
  return mrb_ary_entry(array, (mrb_int)index);
}

mrb_value oribi_mrb_bool(int value)
{
  return mrb_bool_value(value != 0);
}

mrb_value oribi_mrb_top(mrb_state *mrb)
{
  return mrb_obj_value(mrb->top_self);
}

mrb_value oribi_mrb_class(mrb_state *mrb, mrb_value value)
{
  return mrb_obj_value(mrb_obj_class(mrb, value));
}

/* A `break` or `return` on its way out of a block: thrown like an exception, but not an object. */
int oribi_mrb_is_jump(mrb_value value)
{
  return mrb_type(value) == MRB_TT_BREAK;
}

/* What a boxed value of ours points to; NULL for anything else. */
void *oribi_mrb_boxed(mrb_value value)
{
  return mrb_data_p(value) && DATA_TYPE(value) == &boxed ? DATA_PTR(value) : NULL;
}

/* The source as bytecode with its lines; 0 if that worked, else `*text` says why not. Both are to be
   freed with oribi_mrb_free. */
struct compilation {
  const char *source;
  size_t length;
  const char *file;
  uint8_t *code;
  size_t size;
  char *complaint;
};

static void complain(struct compilation *it, struct mrb_parser_state *parser, mrb_state *mrb)
{
  const struct mrb_parser_message *first = parser ? &parser->error_buffer[0] : NULL;
  const char *message = first && first->message ? first->message : "it cannot be compiled";
  size_t room = strlen(it->file) + strlen(message) + 32;
  it->complaint = mrb_malloc(mrb, room);
  snprintf(it->complaint, room, "%s:%d: %s", it->file, first ? first->lineno : 0, message);
}

static mrb_value compile(mrb_state *mrb, void *data)
{
  struct compilation *it = data;
  mrbc_context *context = mrbc_context_new(mrb);
  context->capture_errors = TRUE;
  mrbc_filename(mrb, context, it->file);
  struct mrb_parser_state *parser = mrb_parse_nstring(mrb, it->source, it->length, context);
  struct RProc *proc = NULL;
  if (parser && parser->nerr == 0) {
    proc = mrb_generate_code(mrb, parser);
  }
  if (proc) {
    if (mrb_dump_irep(mrb, proc->body.irep, MRB_DUMP_DEBUG_INFO, &it->code, &it->size)) {
      it->code = NULL;
    }
  }
  if (!it->code) {
    complain(it, parser, mrb);
  }
  if (parser) {
    mrb_parser_free(parser);
  }
  mrbc_context_free(mrb, context);
  return mrb_nil_value();
}

/* 0: compiled; 1: the complaint says why not; 2: raised, and `*result` is the exception. */
int oribi_mrb_compile(mrb_state *mrb, struct compilation *it, mrb_value *result)
{
  mrb_bool failed = FALSE;
  int arena = mrb_gc_arena_save(mrb);
  *result = mrb_protect_error(mrb, compile, it, &failed);
  mrb->exc = NULL;
  mrb_gc_arena_restore(mrb, arena);
  if (failed) {
    mrb_gc_protect(mrb, *result);
    return 2;
  }
  return it->code ? 0 : 1;
}

void oribi_mrb_free(mrb_state *mrb, void *pointer)
{
  mrb_free(mrb, pointer);
}

/* 3.1.0 as 30100. */
int oribi_mrb_version(void)
{
  return MRUBY_RELEASE_MAJOR * 10000 + MRUBY_RELEASE_MINOR * 100 + MRUBY_RELEASE_TEENY;
}
