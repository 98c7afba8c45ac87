/** The long forms of tests: `npm run test:long`. */
import { configOf } from "./vitest.config.ts"

export default configOf("long")
