/** System, as the service composes it. */
import { Layer } from "effect"
import { FeaturesHttp } from "./feature-list.ts"
import { SystemHttp } from "./handlers.ts"

export const system = { routes: Layer.merge(FeaturesHttp, SystemHttp) }
