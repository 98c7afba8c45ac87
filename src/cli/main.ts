/** Entry point of `svc`. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { program } from "./program.ts"

NodeRuntime.runMain(program, { disableErrorReporting: true })
