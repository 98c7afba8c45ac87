/** Errors of projects and their keys (spec section 4.9). */
import { Schema } from "effect"
import { coded, detailed } from "./wire.ts"

/** The project name looks like the service or its staff. */
export class NameReserved extends coded<NameReserved>()(
  "name_reserved",
  400,
  "This name is reserved."
) {}

/** The developer is a member of as many projects as the limit allows. */
export class TooManyProjects extends detailed<TooManyProjects>()(
  "too_many_projects",
  409,
  "You have too many projects.",
  { limit: Schema.Finite }
) {}

/** The environment has as many keys as the limit allows; revoke one. */
export class TooManyKeys extends detailed<TooManyKeys>()(
  "too_many_keys",
  409,
  "This environment has too many keys.",
  { limit: Schema.Finite }
) {}
