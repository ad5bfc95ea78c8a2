-- pipeline: flights_enriched
-- sources: {flights: nyc.raw.flights, airlines: nyc.raw.airlines, airports: nyc.raw.airports, planes: nyc.raw.planes, weather: nyc.raw.weather}
-- output: nyc.analytics.flights_enriched
-- strategy: replace
-- primary_key: [time_hour, carrier, flight]
select f.time_hour,
       f.carrier,
       f.flight,
       airlines.name as airline,
       f.origin,
       departure.name as origin_airport,
       f.dest,
       arrival.name as dest_airport,
       f.dep_time is null as cancelled,
       f.dep_delay,
       f.arr_delay,
       f.air_time,
       f.distance,
       f.tailnum,
       planes.manufacturer,
       planes.model,
       planes.year as plane_built,
       planes.seats,
       weather.temp as temperature,
       weather.wind_speed,
       weather.precip as precipitation,
       weather.visib as visibility
from flights f
left join airlines on airlines.carrier = f.carrier
left join airports departure on departure.faa = f.origin
left join airports arrival on arrival.faa = f.dest
left join planes on planes.tailnum = f.tailnum
left join weather on weather.origin = f.origin and weather.time_hour = f.time_hour
