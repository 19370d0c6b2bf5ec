/** Host preflights beside Troubleshoot's own program: the same specs on the same machine give the same verdicts. */
import { createServer, type AddressInfo } from 'node:net';
import { specText } from '../support/preflight.ts';
import { freePort } from '../support/ports.ts';
import { suite } from '../support/suite.ts';
import { keyPairs } from '../support/tls.ts';
import { tree } from '../support/tree.ts';
import { startServer } from '../support/web-server.ts';
import {
  asking,
  comparisons,
  countComparisons,
  each,
  same,
  UBUNTU,
  WORLDS,
} from '../components/support/preflight-oracle.ts';

const test = suite('preflight beside Troubleshoot: network and programs', { timeoutMs: 600_000 });
const compare = comparisons(test);

compare('ports and connections', async () => {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => {
    server.listen(0, resolve);
  });
  const used = (server.address() as AddressInfo).port;
  const free = await freePort();
  for (const port of [used, free]) {
    for (const when of ['connected', 'address-in-use']) {
      await same(asking('tcpPortStatus', when, `port: ${port}`));
      await same(asking('tcpPortStatus', when, `port: ${port}, interface: lo`));
      await same(asking('udpPortStatus', when, `port: ${port}`));
    }
    for (const when of ['connected', 'connection-refused']) {
      await same(asking('tcpConnect', when, `address: '127.0.0.1:${port}', timeout: 5s`));
    }
  }
  await each('tcpConnect', ['error', 'connected'], "address: '127.0.0.1'");
  await each('tcpConnect', ['connection-refused', 'error'], "address: 'localhost:1'");
  await each('tcpLoadBalancer', ['invalid-address', 'connected'], `address: 'LB:1', port: ${free}, timeout: 2s`);
  await each(
    'tcpLoadBalancer',
    ['connected', 'connection-refused'],
    `address: '127.0.0.1:${free}', port: ${free}, timeout: 5s`,
  );
  await same(asking('tcpLoadBalancer', 'address-in-use', `address: '127.0.0.1:${used}', port: ${used}, timeout: 2s`));
  await each('ipv4Interfaces', ['count >= 1', 'count < 0', 'number > 1']);
  await each('ipv4Interfaces', ['count == 0'], '', { offline: true });
  await new Promise((resolve) => {
    server.close(resolve);
  });
});

compare('web servers', async () => {
  await using server = await startServer(({ path }) => {
    return path === '/moved'
      ? { status: 302, headers: { location: '/fine' } }
      : { status: path === '/fine' ? 200 : 404 };
  });
  for (const path of ['fine', 'missing', 'moved']) {
    await each(
      'http',
      ['statusCode == 200', 'statusCode >= 400 && statusCode < 500', 'error'],
      `get: {url: '${server.url}/${path}'}`,
    );
  }
  const nobody = `get: {url: 'http://127.0.0.1:${await freePort()}/'}`;
  await each('http', ['error', 'statusCode == 200', 'status ==', '!(statusCode == 200)'], nobody);
  await each(
    'http',
    ['status == 200', 'statusCode in (200, 201)', '(statusCode = 200) || false'],
    `get: {url: '${server.url}/fine'}`,
  );
  await same(asking('http', 'statusCode == 404', `post: {url: '${server.url}/x', body: '{}'}`));
});

compare('certificates', async () => {
  const { files } = await keyPairs();
  await using box = await tree({
    ...files,
    text: 'x',
    empty: '',
  });
  const pairs = [
    'a.crt a.key',
    'a.crt b.key',
    'a.crt e.key',
    'a.key a.crt',
    'a.crt a.crt',
    'a.crt text',
    'text a.key',
    'no a.key',
    'a.crt no',
    'empty a.key',
  ];
  const states = ['valid', 'mismatch', 'encrypted', 'switched', 'invalid', 'missing'];
  for (const pair of pairs) {
    const [certificate = '', key = ''] = pair.split(' ');
    const outcomes = states.map((state, at) => {
      const verdict = ['pass', 'warn', 'fail'][at % 3] ?? 'pass';
      return `          - ${verdict}: {when: key-pair-${state}, message: m}\n`;
    });
    // Two specs tell all six states apart.
    for (const rows of [outcomes, [...outcomes.slice(3), ...outcomes.slice(0, 3)].slice(0, 3)]) {
      await same(
        specText(`  collectors:
    - certificate: {certificatePath: '${box.at(certificate)}', keyPath: '${box.at(key)}'}
  analyzers:
    - certificate:
        outcomes:
${rows.join('')}          - fail: {message: none}
`),
      );
    }
  }
});

compare('programs and packages', async () => {
  const text = (regex: string, rows: string): string =>
    specText(`  collectors:
    - run: {collectorName: one, command: sh, args: ['-c', 'echo loss 12%; echo oops >&2; exit 3']}
  analyzers:
    - textAnalyze:
        checkName: text
        fileName: host-collectors/run-host/one.txt
        ${regex}
        outcomes: [${rows}]
`);
  await same(text('regex: loss', "{pass: {when: 'true', message: m}}, {fail: {when: 'false', message: m}}"));
  await same(text('regex: nothing', "{pass: {when: 'true', message: m}}, {fail: {when: 'false', message: m}}"));
  await same(text('regex: nothing', '{pass: {message: m}}, {warn: {message: m}}'));
  await same(text("regexGroups: '(?P<Loss>\\d+)%'", '{fail: {when: Loss > 10, message: m}}, {pass: {message: m}}'));
  await same(text("regexGroups: '(?P<Loss>\\d+)%'", '{fail: {when: Loss > 20, message: m}}, {pass: {message: m}}'));
  await same(text('regex: (', '{pass: {message: m}}'));
  const asks =
    '#!/bin/sh\ncase "$2" in lvm2) echo "package lvm2 is not installed" >&2; exit 1;; esac\necho "Version: 1"\n';
  const packages = asking(
    'systemPackages',
    '{{ not .IsInstalled }}',
    'ubuntu: [nfs-common, lvm2], ubuntu20: [x], rocky9: [lvm2], rhel: [a]',
  );
  for (const [, world] of WORLDS.slice(1)) await same(packages, { ...world, programs: { dpkg: asks, rpm: asks } });
  await same(asking('systemPackages', '{{ eq .Name "lvm2" }}', 'ubuntu: [lvm2]'), {
    ...UBUNTU,
    programs: { dpkg: asks },
  });
  await same(asking('systemPackages', '{{ nosuch }}', 'ubuntu: [lvm2]'), { ...UBUNTU, programs: { dpkg: asks } });
});

compare('what is excluded, and outcomes without a condition', async () => {
  const spec = (exclude: string): string =>
    specText(`  collectors:
    - cpu: {}
    - memory: {exclude: ${exclude}}
  analyzers:
    - cpu: {outcomes: [{pass: {message: m}}]}
    - memory: {exclude: ${exclude}, checkName: Memory, strict: true, outcomes: [{warn: {message: m}}]}
`);
  for (const exclude of ['true', "'true'", "'1'", 'false', "''", "'False'", "'maybe'"]) await same(spec(exclude));
  await same(asking('cpu', 'count > 1000').replace('- pass: {message: else}', '- fail: {when: count < 0, message: m}'));
});

countComparisons(compare);

test.run();
