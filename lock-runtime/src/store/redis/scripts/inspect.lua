-- Reply: {value or nil, PTTL, places in the queue}.
return {redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1]), redis.call('ZCARD', KEYS[2])}
