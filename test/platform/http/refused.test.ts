/** What is advised if a server refuses access. */
import * as assert from '../../support/assert.ts';
import { quickHttp } from '../../support/client.ts';
import { answers } from '../../support/faults.ts';
import { suite } from '../../support/suite.ts';
import { serveFiles } from '../../support/web-server.ts';

const test = suite('platform/http/refused');

test('a server that refuses access is no registry, unless it negotiates authorization', async ({ signal }) => {
  await using server = await serveFiles({}, { faults: [answers({ status: 403 })] });
  await using http = await quickHttp();
  const request = { doing: 'get it', url: `${server.url}/a` };
  const { body, ...head } = await http.small(request, { limit: 10, signal });
  const plain = http.failure(request, head, body);
  assert.match(plain.hint ?? '', /^check the address, .* USER:PASSWORD@ before its host$/);
  assert.not.match(plain.hint ?? '', 'docker');
  for (const more of [{ authorize: async () => Promise.resolve(undefined) }, { via: `${server.url}/v2/` }])
    assert.match(http.failure({ ...request, ...more }, head, body).hint ?? '', 'docker login');
});

test.run();
