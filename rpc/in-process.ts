/** Endpoints that only calls in the process reach: those of agents and functions. No HTTP route has them. */
import { HttpApi } from "effect/http-api"
import { addAll, inProcessGroups } from "./features.ts"

export class InProcessApi extends addAll(HttpApi.make("in-process"), inProcessGroups).annotate(
  HttpApi.ParseOptions,
  { errors: "all" }
) {}
