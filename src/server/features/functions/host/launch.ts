/** Starts the process of an environment: its configuration, sockets and bounds. */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { Redacted } from "effect"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import { type WorkerdOptions, WorkerdProcess } from "#server/platform/workerd/process"
import { socketNames } from "../compiler/socket-names.ts"
import type { CompileInput } from "../compiler/worker-options.ts"
import type { FunctionBundle, FunctionProgram } from "../program.ts"
import type { HostContext } from "./host-context.ts"
import type { EnvironmentDirectories } from "./directories.ts"

/** Paths of the process's sockets. */
export interface Sockets {
  readonly main: string
  readonly admin: string
  readonly entry: string
}

/** Returns the input of the compiler. */
export const compileInput = (
  program: FunctionBundle & Partial<FunctionProgram>,
  directories: EnvironmentDirectories,
  keys: Pick<CompileInput, "callKey" | "sealKey">,
  { deniedAddresses, runtimeDate }: Pick<HostContext, "deniedAddresses" | "runtimeDate">
) => ({
  mainModule: program.mainModule,
  modules: program.modules,
  bindings: program.bindings,
  vars: program.vars,
  secrets: Object.fromEntries(
    Object.entries(program.secrets ?? {}).map(([name, secret]) => [name, Redacted.value(secret)])
  ),
  compatibilityDate: program.compatibilityDate ?? runtimeDate,
  subRequests: program.limits?.subRequests ?? 0,
  ...keys,
  dataDirectory: directories.data,
  hostSocket: join(directories.sockets, "host"),
  deniedAddresses
})

/** Returns new socket paths for each start, since the previous process may still hold its own. */
export const socketsOf = ({ sockets }: EnvironmentDirectories, start: number): Sockets => ({
  main: join(sockets, `main${start}`),
  admin: join(sockets, `admin${start}`),
  entry: join(sockets, `entry${start}`)
})

export const removeSockets = (sockets: Sockets): void => {
  for (const path of Object.values(sockets)) rmSync(path, { force: true })
}

/** Starts workerd for an environment. */
export const startWorkerd = (
  { programs }: Pick<HostContext, "programs">,
  directories: EnvironmentDirectories,
  config: Uint8Array,
  sockets: Sockets,
  {
    fileBytes,
    ...options
  }: Pick<WorkerdOptions, "onLine" | "startCpuMillis" | "startMillis"> & {
    /** Bytes of the largest file; 0 means no limit. */
    readonly fileBytes: number
  }
): Promise<WorkerdProcess> =>
  WorkerdProcess.start({
    programs,
    confinement: {
      uid: directories.uid,
      dataBytes: functionRuntime.dataBytes,
      openFiles: functionRuntime.openFiles,
      threads: functionRuntime.threads,
      fileBytes
    },
    config,
    sockets: {
      [socketNames.main]: `unix:${sockets.main}`,
      [socketNames.admin]: `unix:${sockets.admin}`,
      [socketNames.entry]: `unix:${sockets.entry}`
    },
    // Where simulators report to miniflare.
    externals: { loopback: `unix:${join(directories.sockets, "host")}` },
    lineBytes: functionRuntime.logLineBytes * 2,
    ...options
  })
