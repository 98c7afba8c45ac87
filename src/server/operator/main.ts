/** Entry point of the acts of the operator, which `svc operator` starts. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { program } from "./program.ts"

program.pipe(Effect.provide(NodeServices.layer), NodeRuntime.runMain)
