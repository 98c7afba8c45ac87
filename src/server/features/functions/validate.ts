/** Starts a deployment beside the live version to validate it. */
import { Option, Schema } from "effect"
import { FunctionInvalid, Unavailable } from "#rpc/errors/codes"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import { StartFailure } from "#server/platform/workerd/process"
import { watchCpu } from "#server/platform/process-usage"
import { compileInput, socketsOf, startWorkerd } from "./host/launch.ts"
import type { HostContext } from "./host/host-context.ts"
import type { EnvironmentDirectories } from "./host/directories.ts"
import { makeSealKey, ProcessSeal } from "./host/process-seal.ts"
import { storageLimitsOf } from "./host/storage-use.ts"
import { postJson } from "./host/worker-http.ts"
import type { FunctionBundle } from "./program.ts"
import { ValidatedFunction } from "./stored-data.ts"

const Line = Schema.fromJsonString(Schema.Struct({ message: Schema.String }))
const decodeLine = Schema.decodeUnknownOption(Line)

const decodeExports = Schema.decodeUnknownOption(ValidatedFunction)

/**
 * Forms of a place in an error. They skip the service's modules, which surround those of the player and
 * raise no errors.
 */
const placeForms = [
  /^\s*at (?:.*\()?(?:file:\/\/\/functions\/)?(?!__svc_|node:|cloudflare:)([^\s():]+):(\d+)/m,
  /^\s*imported from "(?!__svc_)([^"]+)"()/m
]

const summaryMaxCharacters = 1000

/** Extracts the error of the modules from workerd's output: the message, the file and the line. */
export const parseProblem = (
  output: string
): { readonly message: string; readonly file: string | null; readonly line: number | null } => {
  const problem = output
    .split("\n")
    .flatMap((line) =>
      Option.match(decodeLine(line), { onNone: () => [], onSome: ({ message }) => [message] })
    )
    .find((message) => message.startsWith("service core:user:main:"))
  if (problem === undefined) return { message: "The modules do not start.", file: null, line: null }
  const text = problem.replace(/^service core:user:main: (?:Uncaught )?/, "")
  const [message = ""] = text.split("\n", 1)
  const place = placeForms.map((form) => form.exec(text)).find((match) => match !== null)
  const [, file, line] = place ?? []
  return {
    message: message.slice(0, summaryMaxCharacters),
    file: file ?? null,
    line: line === undefined || line === "" ? null : Number(line)
  }
}

const late = () =>
  new FunctionInvalid({
    message: `The modules did not start within ${functionRuntime.startCpuMillis} ms: the top level must end.`,
    details: { file: null, line: null }
  })

const invalid = ({ kind, output }: StartFailure): FunctionInvalid => {
  if (kind === "late") return late()
  const { file, line, message } = parseProblem(output)
  return new FunctionInvalid({ message, details: { file, line } })
}

/** Rejects a compatibility date after that of the runtime. */
const checkDate = ({ runtimeDate }: HostContext, { compatibilityDate }: FunctionBundle): void => {
  if (compatibilityDate === undefined || compatibilityDate <= runtimeDate) return
  throw new FunctionInvalid({
    message: `The compatibility date ${compatibilityDate} is too late: this runtime is of ${runtimeDate}.`,
    details: { file: null, line: null }
  })
}

/** Starts the modules with temporary data; rejects with their errors. */
export const validate = async (
  context: HostContext,
  bundle: FunctionBundle
): Promise<ValidatedFunction> => {
  checkDate(context, bundle)
  const directories = context.directories.temporary()
  const releaseSlot = await context.acquireStartSlot().catch(() => {
    throw new Unavailable()
  })
  try {
    return await startOnce(context, bundle, directories)
  } catch (error) {
    throw error instanceof StartFailure ? invalid(error) : error
  } finally {
    releaseSlot()
    context.directories.removeTemporary(directories)
  }
}

const startOnce = async (
  context: HostContext,
  bundle: FunctionBundle,
  directories: EnvironmentDirectories
): Promise<ValidatedFunction> => {
  const sealKey = makeSealKey()
  const config = await context.compiler
    .compile(compileInput(bundle, directories, { callKey: "00", sealKey }, context))
    .catch((error: unknown) => {
      const message = error instanceof Error ? error.message : String(error)
      throw new FunctionInvalid({ message, details: { file: null, line: null } })
    })
  const sockets = socketsOf(directories, 0)
  const process = await startWorkerd(context, directories, config, sockets, {
    fileBytes: 2 * storageLimitsOf(context.storageBytes).ceilingBytes,
    startMillis: functionRuntime.startMillis,
    startCpuMillis: functionRuntime.startCpuMillis,
    onLine: () => undefined
  })
  const endWatch = watchCpu(process.pid, functionRuntime.startCpuMillis, () => process.kill())
  try {
    const { body } = await postJson(
      {
        agent: undefined,
        socketPath: sockets.main,
        seal: new ProcessSeal(sealKey, context.wallClock),
        facts: { kind: "exports" }
      },
      {},
      AbortSignal.timeout(functionRuntime.startMillis)
    )
    return Option.getOrElse(decodeExports(body), () => ({ hooks: [] }))
  } catch {
    throw late()
  } finally {
    endWatch()
    process.kill()
    await process.exited
  }
}
