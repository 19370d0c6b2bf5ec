/** The requests of all commands. */
import * as agent from '../requests/agent.ts';
import * as archive from '../requests/archive.ts';
import * as build from '../requests/build.ts';
import * as bundle from '../requests/bundle.ts';
import * as channel from '../requests/channel.ts';
import * as cluster from '../requests/cluster.ts';
import * as dev from '../requests/dev.ts';
import * as fleet from '../requests/fleet.ts';
import * as hub from '../requests/hub.ts';
import * as installer from '../requests/installer.ts';
import * as machine from '../requests/machine.ts';
import * as node from '../requests/node.ts';
import * as own from '../requests/own.ts';
import * as registration from '../requests/registration.ts';
import * as release from '../requests/release.ts';
import * as repository from '../requests/repository.ts';
import * as serve from '../requests/serve.ts';
import { isObject } from '../core/json.ts';
import type { Request } from '../core/request.ts';
import { SUMMARIES } from './names.ts';

const DECLARED = [
  agent,
  archive,
  build,
  bundle,
  channel,
  cluster,
  dev,
  fleet,
  hub,
  installer,
  machine,
  node,
  own,
  registration,
  release,
  repository,
  serve,
].flatMap((one) => Object.values<unknown>(one));

/** Other fields are of use cases without a command. */
function isRequest(value: unknown): value is Request {
  return isObject(value) && isObject(value['fields']) && isObject(value['options']);
}

const BY_NAME: ReadonlyMap<string, Request> = new Map(DECLARED.filter(isRequest).map((of) => [of.name, of]));

/** Requests in the order of the table of commands. */
export const REQUESTS: readonly Request[] = Object.keys(SUMMARIES).flatMap((name) => BY_NAME.get(name) ?? []);

/** The request of a command. */
export function requestOf(name: string): Request | undefined {
  return BY_NAME.get(name);
}
