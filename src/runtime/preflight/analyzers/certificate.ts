import { firstOutcome, type Analyzer } from '../analyzer.ts';
import { certificate as collector, type KeyPairState } from '../collectors/certificate.ts';

export const certificate: Analyzer<KeyPairState> = {
  kind: 'certificate',
  collector,
  settings: {},
  title: () => 'Certificate Key Pair',
  analyze: firstOutcome((when, state) => when === state),
};
