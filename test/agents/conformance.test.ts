import { acpGemini } from '../conformance/acp-specs.ts'
import { agentSuite } from '../conformance/agent-suite.ts'
import { programSpecs } from '../conformance/program-specs.ts'

agentSuite([...programSpecs, acpGemini])
