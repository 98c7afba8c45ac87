/** Program of an environment for the runtime: modules, bindings, variables and limits. */
import type { Redacted } from "effect"

export type FunctionModuleType = "esm" | "cjs" | "text" | "data" | "json" | "wasm"

export interface FunctionModule {
  readonly name: string
  readonly type: FunctionModuleType
  readonly content: Uint8Array
}

export interface FunctionBinding {
  readonly name: string
  readonly type: "db" | "kv" | "files" | "queue" | "durableObject" | "secret"
  /** Exported class of a durable object. */
  readonly class?: string
}

/** A database, a namespace of keys or a store of files, by its name. */
export type StoredResource = Pick<FunctionBinding, "name"> & {
  readonly type: "db" | "kv" | "files"
}

/** Content of a deployment. */
export interface FunctionBundle {
  readonly mainModule: string
  readonly modules: ReadonlyArray<FunctionModule>
  readonly bindings: ReadonlyArray<FunctionBinding>
  readonly vars: Readonly<Record<string, string>>
  /** Compatibility date of workerd; undefined for the date of the runtime. */
  readonly compatibilityDate: string | undefined
}

export interface FunctionLimits {
  readonly cpuMs: number
  readonly subRequests: number
}

/** Live version of an environment with its secrets and limits. */
export interface FunctionProgram extends FunctionBundle {
  readonly version: number
  readonly secrets: Readonly<Record<string, Redacted.Redacted<string>>>
  readonly limits: FunctionLimits
  /** Whether this is the development environment, whose errors show the message of the exception. */
  readonly isDevelopment: boolean
}

/** State of the functions of an environment. */
export type FunctionState =
  | { readonly kind: "live"; readonly program: FunctionProgram }
  /** State without a program: functions are disabled, or the environment has no deployment. */
  | { readonly kind: "absent" }
  | { readonly kind: "suspended" }
