/** Errors of the environment config (spec section 2.2). */
import { Schema } from "effect"
import { detailed } from "./wire.ts"
import { Issue } from "./requests.ts"

/** The config document breaks rules; nothing was changed. `message` names every problem. */
export class InvalidConfig extends detailed<InvalidConfig>()(
  "invalid_config",
  400,
  "The config is not valid.",
  { issues: Schema.Array(Issue) }
) {}

/** `If-Match` names an older config version. */
export class ConfigConflict extends detailed<ConfigConflict>()(
  "config_conflict",
  412,
  "The config has changed since you read it.",
  { currentVersion: Schema.Finite }
) {}
