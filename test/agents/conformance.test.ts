import { acpGemini } from '../conformance/acp-specs.ts'
import { agentSuite } from '../conformance/agent-suite.ts'
import { claudeSpec, codexSpec } from '../conformance/program-specs.ts'

agentSuite([claudeSpec, codexSpec, acpGemini])
