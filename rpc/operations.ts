/**
 * What an endpoint for operators is, beside its HTTP: the name of its change in the audit log, its tool
 * for agents, and whether functions may call it. Each door reads the annotation; none repeats it.
 */
import { Context } from "effect"
import { type HttpApiEndpoint, OpenApi } from "effect/http-api"
import type { AuditAction } from "./audit.ts"
import { SecretKey } from "./auth.ts"

/** An endpoint as a tool of the MCP server. Its parameters are those of the endpoint. */
export interface AgentTool {
  readonly name: string
  /** For the agent; the summary of the endpoint if absent. */
  readonly description?: string
  readonly effect: "reads" | "changes" | "destroys"
  /** Whether a repetition changes nothing more. */
  readonly idempotent?: boolean
}

/** What an operation is, beside its HTTP. */
export interface OperationFacts {
  /** Action of the entry in the audit log; absent for a read. */
  readonly audit?: AuditAction
  readonly tool?: AgentTool
  /** Whether the binding `svc` of functions serves the endpoint. */
  readonly functions?: boolean
}

/** Facts of an operator's endpoint. */
export const Operation = Context.Reference<OperationFacts>("rpc/operations/Operation", {
  defaultValue: () => ({})
})

/** Annotations of an operator's endpoint: its summary, and its facts. */
export const operation = (summary: string, facts: OperationFacts) =>
  Context.merge(OpenApi.annotations({ summary }), Context.make(Operation, facts))

/** Facts of a read that is also a tool for agents. */
export const readBy = (name: string): OperationFacts => ({ tool: { name, effect: "reads" } })

/** Doors beside HTTP: the agent's tools, and the binding `svc` of functions. */
export const doors = ["agent", "functions"] as const
export type Door = (typeof doors)[number]

/** Whether a door opens an endpoint. Only endpoints for a secret key can be open, and none is by default. */
export const isOpenTo = (
  door: Door,
  { annotations, middlewares }: HttpApiEndpoint.Top
): boolean => {
  const { functions = false, tool } = Context.get(annotations, Operation)
  const isOpen = door === "functions" ? functions : tool !== undefined
  return isOpen && Array.from(middlewares).some(({ key }) => key === SecretKey.key)
}
