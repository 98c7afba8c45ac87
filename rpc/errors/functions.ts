/** Error codes of Functions: what a deployment, a call or a statement may answer. */
import { Schema } from "effect"
import { coded, detailed } from "./wire.ts"

/**
 * The deployment cannot start: a syntax error, a missing import, or a top level that does not end.
 * `file` and `line` are its place, if the runtime names one. The previous version stays live.
 */
export class FunctionInvalid extends detailed<FunctionInvalid>()(
  "function_invalid",
  400,
  "The function cannot start.",
  { file: Schema.NullOr(Schema.String), line: Schema.NullOr(Schema.Finite) }
) {}

/** The call used more than `limits.cpuMs`, or more memory than an environment has. Do less in one call. */
export class FunctionCpuExceeded extends coded<FunctionCpuExceeded>()(
  "function_cpu_exceeded",
  503,
  "The function used more CPU time or memory than its limit."
) {}

/** The call sent more than `limits.subRequests` requests. Send fewer, or raise the limit. */
export class FunctionSubrequestsExceeded extends coded<FunctionSubrequestsExceeded>()(
  "function_subrequests_exceeded",
  503,
  "The function sent more requests than its limit."
) {}

/** The functions of this environment are suspended. The status says why. */
export class FunctionsSuspended extends coded<FunctionsSuspended>()(
  "functions_suspended",
  503,
  "The functions of this environment are suspended."
) {}

/** The function threw. In development the message is that of the exception. */
export class FunctionError extends coded<FunctionError>()(
  "function_error",
  500,
  "The function failed."
) {}

/** The statement failed; the message is SQLite's. */
export class SqlError extends coded<SqlError>()("sql_error", 400, "The statement failed.") {}
