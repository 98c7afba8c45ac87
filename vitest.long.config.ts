/** The long forms of the simulation, chaos and fuzz tests: `npm run test:long`. */
import { configOf } from "./vitest.config.ts"

export default configOf("long")
