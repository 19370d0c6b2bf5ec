import { firstOutcome, type Analyzer } from '../analyzer.ts';
import { http as collector, type HttpFacts } from '../collectors/http.ts';
import { readCondition } from '../condition.ts';

export const http: Analyzer<HttpFacts> = {
  kind: 'http',
  collector,
  settings: {},
  title: () => 'HTTP Request',
  analyze: firstOutcome(holds),
};

/** `error`, `statusCode == 200`, `statusCode >= 200 && statusCode < 300`. */
function holds(when: string, facts: HttpFacts): boolean {
  if (when === 'error') return 'error' in facts;
  const condition = readCondition(when);
  return 'statusCode' in facts && condition({ statusCode: facts.statusCode });
}
