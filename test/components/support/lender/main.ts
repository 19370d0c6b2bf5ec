/**
 * The process that has the servers of a run. It ends with its standard input, and so with the runner, however that ends.
 * usage: main.js SOCKET
 */
import { text } from 'node:stream/consumers';
import { lend } from '../../../runner/lending.ts';
import { createStock } from '../../../runner/stock.ts';
import { lendApiServer } from './api-server.ts';

const [path = ''] = process.argv.slice(2);
{
  await using _lending = await lend(path, { 'api-server': createStock(lendApiServer) });
  // The runner waits for a first byte.
  process.stdout.write('.');
  await text(process.stdin);
}
process.exit(0);
