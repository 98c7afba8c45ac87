/** A player's function as the runtime runs it: modules, bindings, variables and limits. */
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
  /** The exported class of a durable object. */
  readonly class?: string
}

/** What a deployment consists of. */
export interface FunctionBundle {
  readonly mainModule: string
  readonly modules: ReadonlyArray<FunctionModule>
  readonly bindings: ReadonlyArray<FunctionBinding>
  readonly vars: Readonly<Record<string, string>>
  /** Undefined: the date of the runtime. */
  readonly compatibilityDate: string | undefined
}

export interface FunctionLimits {
  readonly cpuMs: number
  readonly subRequests: number
}

/** The live version of an environment, with what it needs to run. */
export interface FunctionProgram extends FunctionBundle {
  readonly version: number
  readonly secrets: Readonly<Record<string, Redacted.Redacted<string>>>
  readonly limits: FunctionLimits
  /** The development environment: errors show the message of the exception. */
  readonly isDevelopment: boolean
}

/** What the functions of an environment are. */
export type FunctionState =
  | { readonly kind: "live"; readonly program: FunctionProgram }
  /** Functions are disabled, or nothing is deployed. */
  | { readonly kind: "absent" }
  | { readonly kind: "suspended" }
