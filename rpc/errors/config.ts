/** Errors of the environment config. */
import { Schema } from "effect"
import { detailed } from "./wire.ts"
import { Issue } from "./requests.ts"

/** The config document is invalid, and nothing changed. `message` and `issues` name every problem. */
export class InvalidConfig extends detailed<InvalidConfig>()(
  "invalid_config",
  400,
  "The config is not valid.",
  { issues: Schema.Array(Issue) }
) {}

/** `If-Match` names an old config version. Read the current one, merge and push again. */
export class ConfigConflict extends detailed<ConfigConflict>()(
  "config_conflict",
  412,
  "The config has changed since you read it.",
  { currentVersion: Schema.Finite }
) {}
